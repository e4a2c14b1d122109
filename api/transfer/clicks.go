package transfer

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"linkstream/api/links"
	"linkstream/schema"
)

// maxDays bounds the rows of a file of clicks, which an import has in memory.
const maxDays = 1 << 20

// source returns the source of the file's clicks.
func (s *session) source() string {
	switch format := s.report.Format; {
	case s.options.Source != "":
		return s.options.Source
	case format == Linkstream || format == Clicks:
		return "import"
	default:
		return string(format)
	}
}

func (s *session) checkSource() error {
	if !schema.ValidTag(s.source()) {
		return schema.ClientErrorf(schema.CodeInvalid,
			"The source of clicks must have 1 to 32 characters of a-z 0-9 _ and -.")
	}
	return nil
}

// importClicks counts the clicks that the rows of a chunk state, on the days on which the links were created. What the
// source has said about a link before is replaced, so an import may be run again.
//
// A file of no other service may be an export of this one, whose clicks are counted here already if the links were not
// moved. So it has only clicks of links that nobody has clicked.
func (s *session) importClicks(items []*item) error {
	counted := map[int64]int64{}
	if s.report.Format == Linkstream {
		var present []int64
		for _, it := range items {
			if it.clicks > 0 && it.outcome == Present && it.link.ID != 0 && s.sums[it.link.ID] == 0 {
				present = append(present, it.link.ID)
			}
		}
		var err error
		if counted, err = s.clickCounts(present); err != nil {
			return err
		}
	}
	var histories []schema.History
	place := map[int64]int{}
	for _, it := range items {
		switch {
		case it.clicks == 0 || it.outcome == Failed:
			continue
		case counted[it.link.ID] > 0:
			it.note(noteCounted)
			continue
		}
		it.note(noteClicks)
		s.report.Clicks += it.clicks
		if s.dry {
			continue
		}
		clicks := it.clicks
		if it.alias == "" {
			s.sums[it.link.ID] += clicks
			clicks = s.sums[it.link.ID]
		}
		date := it.link.CreatedAt.UTC().Format(time.DateOnly)
		history := schema.History{AccountID: s.account, LinkID: it.link.ID, Source: s.source(),
			Days: []schema.DayCount{{Date: date, Total: min(clicks, schema.MaxImportedClicks)}}}
		if i, again := place[it.link.ID]; again {
			histories[i] = history
			continue
		}
		place[it.link.ID] = len(histories)
		histories = append(histories, history)
	}
	return s.setHistories(histories)
}

// clickCounts returns the clicks on links, by the ID.
func (s *session) clickCounts(ids []int64) (map[int64]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return s.clicks.ClickCounts(s.ctx, s.account, ids)
}

func (s *session) setHistories(histories []schema.History) error {
	for batch := range schema.HistoryBatches(histories) {
		if err := s.clicks.SetHistories(s.ctx, batch...); err != nil {
			return err
		}
	}
	return nil
}

// storeDays imports a file of clicks by day. The rows of a link may be anywhere in the file, so all of them are read
// first.
func (s *session) storeDays() error {
	items, err := s.readDays()
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(items, chunkRows) {
		if err := s.findLinks(chunk); err != nil {
			return err
		}
	}
	histories := map[int64]*schema.History{}
	for _, it := range items {
		if it.outcome == Failed {
			continue
		}
		h := histories[it.link.ID]
		if h == nil {
			h = &schema.History{AccountID: s.account, LinkID: it.link.ID, Source: s.source()}
			histories[it.link.ID] = h
		}
		h.Days = append(h.Days, schema.DayCount{Date: it.date, Total: it.clicks})
	}
	all := make([]schema.History, 0, len(histories))
	bad := map[int64]string{}
	for _, id := range slices.Sorted(maps.Keys(histories)) {
		h := histories[id]
		slices.SortFunc(h.Days, func(a, b schema.DayCount) int { return cmp.Compare(a.Date, b.Date) })
		same := func(a, b schema.DayCount) bool { return a.Date == b.Date }
		switch days := len(h.Days); {
		case len(slices.CompactFunc(slices.Clone(h.Days), same)) < days:
			bad[id] = "The file has a day of this link twice."
		case days > schema.MaxHistoryDays:
			bad[id] = "The file has more than 5,000 days of this link."
		default:
			all = append(all, *h)
		}
	}
	for _, it := range items {
		if problem := bad[it.link.ID]; problem != "" && it.outcome != Failed {
			s.failRow(it, fieldDate, problem)
		}
		if it.outcome != Failed {
			s.report.Clicks += it.clicks
		}
		s.count(it)
	}
	s.report.Bytes = s.reader.offset()
	if s.dry {
		return nil
	}
	return s.setHistories(all)
}

// readDays reads all rows of a file of clicks. Its rows are Present once their links are found.
func (s *session) readDays() ([]*item, error) {
	var items []*item
	now := time.Now()
	for {
		rec, err := s.reader.next()
		var bad *RowError
		switch {
		case errors.Is(err, io.EOF):
			return items, s.ctx.Err()
		case errors.As(err, &bad):
			items = append(items, &item{line: bad.Line, outcome: Failed, errors: []RowError{*bad}})
			continue
		case err != nil:
			return nil, err
		case len(items) == maxDays:
			return nil, schema.ClientErrorf(schema.CodeInvalid, "The file has more than %d rows. Import it in parts, each "+
				"with all days of its links.", maxDays)
		}
		it := s.reader.items(rec, now)[0]
		it.request.AccountID = s.account
		at, ok := parseTime(s.reader.cells[fieldDate])
		switch {
		case !ok || at.Unix() < 0 || at.After(now):
			s.failRow(it, fieldDate, "The date must be like 2026-12-31, and not after today.")
		case slices.Contains(it.notes, noteNumber) || strings.TrimSpace(s.reader.cells[fieldClicks]) == "":
			s.failRow(it, fieldClicks, "The clicks must be a number from 0 to a billion.")
		}
		it.date, it.notes = at.Format(time.DateOnly), nil
		items = append(items, it)
	}
}

// findLinks finds the links of rows.
func (s *session) findLinks(items []*item) error {
	var keys []schema.LinkKey
	for _, it := range items {
		if it.outcome == "" {
			s.choose(it)
			keys = append(keys, it.key())
		}
	}
	found := map[schema.LinkKey]schema.Link{}
	stored, err := s.links.LinksByHash(s.ctx, keys)
	if err != nil {
		return err
	}
	for _, link := range stored {
		for _, hash := range append([]string{link.Hash}, link.FormerHashes...) {
			found[schema.LinkKey{DomainID: link.DomainID, Hash: hash}] = link
		}
	}
	for _, it := range items {
		link := found[it.key()]
		switch {
		case it.outcome != "":
		case link.ID == 0 || link.AccountID != s.account || link.Stopped == schema.Deleted || it.alias == "":
			s.failRow(it, links.FieldCustomAlias, "You have no link with this alias on this domain: import the links first.")
		default:
			it.outcome, it.link, it.request.LongURL = Present, link, link.URL
		}
	}
	return nil
}

// failRow gives a row a problem of a field.
func (s *session) failRow(it *item, field, problem string) {
	it.outcome = Failed
	it.errors = append(it.errors, RowError{it.line, s.columnOf(field), problem})
}
