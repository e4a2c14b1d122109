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

// Bounds of a file of clicks, which an import has in memory.
const (
	maxDays     = 1 << 20 // rows
	maxDayLinks = 100_000
)

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
	refused, err := s.setHistories(histories)
	for _, it := range items {
		if refused[it.link.ID] != "" && it.clicks > 0 && it.outcome != Failed {
			s.report.Clicks -= it.clicks
			it.note(noteSources)
		}
	}
	return err
}

// clickCounts returns the clicks on links, by the ID.
func (s *session) clickCounts(ids []int64) (map[int64]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return s.clicks.ClickCounts(s.ctx, s.account, ids)
}

// setHistories replaces histories, and returns the links of those that cannot be kept, with the reason.
func (s *session) setHistories(histories []schema.History) (refused map[int64]string, err error) {
	refused = map[int64]string{}
	for batch := range schema.HistoryBatches(histories) {
		if err := s.clicks.SetHistories(s.ctx, batch...); err == nil {
			continue
		} else if !errors.Is(err, schema.ErrManySources) {
			return nil, err
		}
		for _, history := range batch { // one of them is refused
			err := s.clicks.SetHistories(s.ctx, history)
			if errors.Is(err, schema.ErrManySources) {
				refused[history.LinkID] = schema.ErrManySources.Message
			} else if err != nil {
				return nil, err
			}
		}
	}
	return refused, nil
}

// dayRow is a row of a file of clicks by day.
type dayRow struct {
	line            int32
	link            int32 // in dayFile.links; -1 for a row that cannot be read
	day             int32 // since 1970
	clicks          int32
	column, problem string // of a row that fails
}

func (r *dayRow) fail(column, problem string) { r.column, r.problem = column, problem }

// dayFile is a file of clicks by day. The rows of a link may be anywhere in the file, so all of them are in memory.
type dayFile struct {
	rows  []dayRow
	links []*item // each once
}

// storeDays imports a file of clicks by day.
func (s *session) storeDays() error {
	file, err := s.readDays()
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(file.links, chunkRows) {
		if err := s.findLinks(chunk); err != nil {
			return err
		}
	}
	histories, refused := file.histories(s.account, s.source())
	if !s.dry {
		more, err := s.setHistories(histories)
		if err != nil {
			return err
		}
		maps.Copy(refused, more)
	}
	s.countDays(file, refused)
	s.report.Bytes = s.reader.offset()
	return nil
}

// histories returns the histories of the links that were found. refused has the links whose days are not valid.
func (f *dayFile) histories(account int64, source string) (all []schema.History, refused map[int64]string) {
	days := map[int64][]schema.DayCount{}
	for _, row := range f.rows {
		if row.problem == "" && f.links[row.link].outcome != Failed {
			id, at := f.links[row.link].link.ID, time.Unix(int64(row.day)*24*3600, 0).UTC()
			days[id] = append(days[id], schema.DayCount{Date: at.Format(time.DateOnly), Total: int64(row.clicks)})
		}
	}
	refused = map[int64]string{}
	for _, id := range slices.Sorted(maps.Keys(days)) {
		list := days[id]
		slices.SortFunc(list, func(a, b schema.DayCount) int { return cmp.Compare(a.Date, b.Date) })
		again := false
		for i := range list[1:] {
			again = again || list[i].Date == list[i+1].Date
		}
		switch {
		case again:
			refused[id] = "The file has a day of this link twice."
		case len(list) > schema.MaxHistoryDays:
			refused[id] = "The file has more than 5,000 days of this link."
		default:
			all = append(all, schema.History{AccountID: account, LinkID: id, Source: source, Days: list})
		}
	}
	return all, refused
}

// countDays counts the rows of a file of clicks.
func (s *session) countDays(f *dayFile, refused map[int64]string) {
	for _, row := range f.rows {
		it := &item{}
		if row.link >= 0 {
			*it = *f.links[row.link]
			s.countHost(it)
			if problem := refused[it.link.ID]; it.link.ID != 0 && problem != "" && it.outcome != Failed && row.problem == "" {
				row.fail(s.columnOf(fieldDate), problem)
			}
		}
		it.line = int(row.line)
		if row.problem != "" {
			it.outcome, it.errors = Failed, []RowError{{it.line, row.column, row.problem}}
		}
		for i := range it.errors {
			it.errors[i].Line = it.line
		}
		if it.outcome != Failed {
			s.report.Clicks += int64(row.clicks)
		}
		s.count(it)
	}
}

// readDays reads all rows of a file of clicks.
func (s *session) readDays() (*dayFile, error) {
	file, places, now := &dayFile{}, map[string]int32{}, time.Now()
	for {
		rec, err := s.reader.next()
		var bad *RowError
		switch {
		case errors.Is(err, io.EOF):
			return file, s.ctx.Err()
		case errors.As(err, &bad):
			file.rows = append(file.rows, dayRow{line: int32(bad.Line), link: -1, column: bad.Column, problem: bad.Reason})
			continue
		case err != nil:
			return nil, err
		case len(file.rows) == maxDays || len(file.links) == maxDayLinks:
			return nil, schema.ClientErrorf(schema.CodeInvalid, "The file has more than %d rows or %d links. Import it in "+
				"parts, each with all days of its links.", maxDays, maxDayLinks)
		}
		it := s.reader.items(rec, now)[0]
		it.request.AccountID = s.account
		name := it.host + "/" + it.alias
		place, known := places[name]
		if !known {
			place = int32(len(file.links))
			places[strings.Clone(name)] = place
		}
		row := dayRow{line: int32(rec.line), link: place, clicks: int32(it.clicks)}
		at, ok := parseTime(s.reader.cells[fieldDate])
		switch {
		case !ok || at.Unix() < 0 || at.After(now):
			row.fail(s.columnOf(fieldDate), "The date must be like 2026-12-31, and not after today.")
		case slices.Contains(it.notes, noteNumber) || strings.TrimSpace(s.reader.cells[fieldClicks]) == "":
			row.fail(s.columnOf(fieldClicks), "The clicks must be a number from 0 to a billion.")
		default:
			row.day = int32(schema.DayNumber(at))
		}
		if file.rows = append(file.rows, row); !known {
			it.notes = nil
			file.links = append(file.links, it)
		}
	}
}

// findLinks finds links by their names.
func (s *session) findLinks(items []*item) error {
	var keys []schema.LinkKey
	for _, it := range items {
		if s.place(it) && it.findable() {
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
		var link schema.Link
		if it.findable() {
			link = found[it.key()]
		}
		if link.ID == 0 || link.AccountID != s.account || link.Stopped == schema.Deleted || it.alias == "" {
			s.failRow(it, links.FieldCustomAlias,
				"You have no link with this alias on this domain: import the links first.")
		} else {
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
