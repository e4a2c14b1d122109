package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
)

// settling moves rows of table recent to the settled tables, a few links with each batch. It is where a pass over all links has
// come to. Nothing depends on it: a row may settle at any time, and every transaction sees it in one of the places.
type settling struct {
	before int64 // rows of earlier quarters settle in this pass
	link   int64 // the last link that was looked at
	ended  bool
}

const (
	// settledRows is about how many rows a pass looks at with a batch. All rows of a link settle together.
	settledRows = 1000
	// settledPerRow is how many rows a pass looks at for each one of the batch, at least: it ends before as many new rows are there.
	settledPerRow = 3
)

// next settles rows of a few links with a batch of some rows, at a time that is given by its quarter of an hour. Rows of that
// quarter still change. Each quarter has a pass of its own.
func (s settling) next(ctx context.Context, tx *sql.Tx, rows int, now int64) (settling, error) {
	if now != s.before {
		s = settling{before: now, link: math.MinInt64}
	}
	if s.ended {
		return s, nil
	}
	var upTo int64
	err := tx.QueryRowContext(ctx, settledUpTo, s.link, max(settledRows, settledPerRow*rows)).Scan(&upTo)
	if errors.Is(err, sql.ErrNoRows) {
		upTo, s.ended, err = math.MaxInt64, true, nil
	}
	if err != nil {
		return s, err
	}
	for _, statement := range settle {
		if _, err := tx.ExecContext(ctx, statement, s.link, upTo, s.before); err != nil {
			return s, err
		}
	}
	s.link = upTo
	return s, nil
}

const (
	settledUpTo = `SELECT link_id FROM recent WHERE link_id > ? ORDER BY link_id LIMIT 1 OFFSET ?`
	ofLinks     = ` WHERE link_id > ?1 AND link_id <= ?2 AND quarter < ?3`
)

// settle are the statements that settle rows of earlier quarters of some links. They read what the views read.
var settle = []string{
	`INSERT INTO settled_facts SELECT link_id, quarter, account_id, device_id, browser_id, os_id, language_id, country_id, referrer, total
	FROM recent_facts` + ofLinks + addSettled,
	`INSERT INTO settled_counters SELECT link_id, day, (SELECT name FROM names WHERE id = device_id) AS device,
	(SELECT name FROM names WHERE id = browser_id) AS browser, sum(total)
	FROM recent_facts` + ofLinks + ` GROUP BY link_id, day, device_id, browser_id` + addSettled,
	`INSERT INTO settled_totals SELECT link_id, sum(total) FROM recent` + ofLinks + ` GROUP BY link_id` + addSettled,
	settleSources("1", "referrer"),
	settleSources("2", "(SELECT name FROM names WHERE id = country_id)"),
	settleSources("3", "(SELECT name FROM names WHERE id = os_id)"),
	settleSources("4", "(SELECT name FROM names WHERE id = language_id)"),
	`DELETE FROM recent` + ofLinks,
}

const addSettled = ` ON CONFLICT DO UPDATE SET total = total + excluded.total`

func settleSources(kind, name string) string {
	return `INSERT INTO settled_sources SELECT link_id, ` + kind + `, day, ` + name + ` AS name, sum(total) FROM recent_facts` + ofLinks +
		` AND name <> '' AND device_id IS NOT (SELECT id FROM names WHERE name = 'bot') GROUP BY link_id, day, 4` + addSettled
}
