package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"iter"
	"time"

	"linkstream/schema"
)

// Each query returns a link, a day, and what is counted, ordered by link and day. The sources and the owners are sorted for
// that, in temporary files if they are many.
const (
	exportClients = `SELECT link_id, day, 0, device, browser, sum(total), 0 FROM counters
	GROUP BY link_id, day, device, browser ORDER BY link_id, day, device, browser`
	exportSources = `SELECT link_id, day, kind, '', name, sum(total), 0 FROM sources
	GROUP BY link_id, day, kind, name ORDER BY link_id, day, kind, name`
	exportOwners = `SELECT link_id, day, account_id, '', '', people, bots FROM owned ORDER BY link_id, day, account_id`
	exportGaps   = `SELECT incarnation, lane, first, last, partition, offset, found FROM gaps`
)

// exported is a row of these queries.
type exported struct {
	link, day       int64
	id              int64 // kind of a source, or account
	device, name    string
	clicks, further int64
}

// ExportClicks calls each for every link and day that has clicks in the click store in the file at path, in their order. The
// counts are only valid during the call.
func ExportClicks(ctx context.Context, path string, each func(*schema.DayCounts) error) error {
	err := withExisting(path, func(db *sql.DB) error {
		db.SetMaxOpenConns(3) // one per query; the store is frozen, so they read the same
		clients, stopClients := iter.Pull2(exportedRows(ctx, db, exportClients))
		defer stopClients()
		sources, stopSources := iter.Pull2(exportedRows(ctx, db, exportSources))
		defer stopSources()
		owners, stopOwners := iter.Pull2(exportedRows(ctx, db, exportOwners))
		defer stopOwners()
		return mergeDays(peek(clients), peek(sources), peek(owners), each)
	})
	return wrap(err, "export %q", path)
}

// exportedRows returns the rows of a query.
func exportedRows(ctx context.Context, db *sql.DB, query string) iter.Seq2[exported, error] {
	return func(yield func(exported, error) bool) {
		rows, err := db.QueryContext(ctx, query)
		if err != nil {
			yield(exported{}, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var r exported
			err := rows.Scan(&r.link, &r.day, &r.id, &r.device, &r.name, &r.clicks, &r.further)
			if !yield(r, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(exported{}, err)
		}
	}
}

// cursor is the next row of a query.
type cursor struct {
	next func() (exported, error, bool)
	row  exported
	err  error
	ok   bool
}

func peek(next func() (exported, error, bool)) *cursor {
	c := &cursor{next: next}
	c.advance()
	return c
}

func (c *cursor) advance() { c.row, c.err, c.ok = c.next() }

// take calls each for the rows of a link and day, which come next if there are any.
func (c *cursor) take(link, day int64, each func(exported)) error {
	for c.ok && c.err == nil && c.row.link == link && c.row.day == day {
		each(c.row)
		c.advance()
	}
	return c.err
}

// mergeDays joins the rows of each link and day. Every click is in clients, so no other row may be left over.
func mergeDays(clients, sources, owners *cursor, each func(*schema.DayCounts) error) error {
	counts := new(schema.DayCounts)
	for clients.ok && clients.err == nil {
		link, day := clients.row.link, clients.row.day
		*counts = schema.DayCounts{LinkID: link, Day: day, Clients: counts.Clients[:0], Referrers: counts.Referrers[:0],
			Countries: counts.Countries[:0], Systems: counts.Systems[:0], Languages: counts.Languages[:0], Owners: counts.Owners[:0]}
		err := cmp.Or(clients.take(link, day, func(r exported) {
			counts.Clients = append(counts.Clients, schema.ClientCount{Device: schema.Device(r.device), Browser: r.name, Total: r.clicks})
		}), sources.take(link, day, func(r exported) { addSource(counts, &r) }), owners.take(link, day, func(r exported) {
			counts.Owners = append(counts.Owners, schema.OwnerCount{AccountID: r.id, People: r.clicks, Bots: r.further})
		}))
		if err != nil {
			return err
		}
		if err := each(counts); err != nil {
			return err
		}
	}
	for _, c := range []*cursor{clients, sources, owners} {
		if c.err != nil {
			return c.err
		}
		if c.ok {
			return schema.Errorf(schema.CodeInternal, "link %d has sources or owners on day %d and no clicks", c.row.link, c.row.day)
		}
	}
	return nil
}

func addSource(to *schema.DayCounts, r *exported) {
	names := &to.Referrers
	switch sourceKind(r.id) {
	case country:
		names = &to.Countries
	case system:
		names = &to.Systems
	case language:
		names = &to.Languages
	}
	*names = append(*names, schema.NameCount{Name: r.name, Total: r.clicks})
}

// ExportGaps returns all gaps in the click store in the file at path.
func ExportGaps(ctx context.Context, path string) (gaps []schema.Gap, err error) {
	err = withExisting(path, func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, exportGaps)
		return forEachRow(rows, err, func() error {
			var gap schema.Gap
			var incarnation sql.RawBytes
			var found int64
			err := rows.Scan(&incarnation, &gap.Lane.Number, &gap.First, &gap.Last, &gap.Partition, &gap.Offset, &found)
			copy(gap.Lane.Incarnation[:], incarnation)
			gap.Found = time.Unix(found, 0).UTC()
			gaps = append(gaps, gap)
			return err
		})
	})
	return gaps, wrap(err, "export gaps of %q", path)
}
