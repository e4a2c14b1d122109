package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"

	"linkstream/schema"
)

// settling is the progress of a pass that moves rows of table recent to the settled tables, a few links with each
// batch. It may be lost: a row may settle at any time, and every transaction sees it in exactly one of the two places.
type settling struct {
	before int64 // rows of earlier quarters settle in this pass
	link   int64 // the last link of which rows have settled
	ended  bool
}

const (
	// settledRows is about how many rows settle with a batch, at least. All rows of a link settle together.
	settledRows = 1000
	// settledPerRow is about how many rows settle for each row of a batch, so that a pass finishes before it can fall
	// behind.
	settledPerRow = 3
)

// next settles the rows of a few links, with a batch that has so many rows. now is the current quarter of an hour,
// whose rows still change and do not settle. Each quarter has one pass over all links.
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

// settle are the statements that settle the rows of earlier quarters of some links.
var settle = func() []string {
	statements := []string{
		`INSERT INTO settled_facts SELECT link_id, quarter, account_id, ` + nameColumns + `, total FROM recent` + ofLinks +
			addTotal,
		`INSERT INTO settled_totals SELECT link_id, sum(total) FROM recent` + ofLinks + ` GROUP BY link_id` + addTotal,
	}
	counts := fmt.Sprintf("sum(%s), sum(%s) FROM recent", peopleOf, botsOf) + ofLinks
	const add = ` ON CONFLICT DO UPDATE SET people = people + excluded.people, bots = bots + excluded.bots`
	statements = append(statements,
		`INSERT INTO settled_quarters SELECT link_id, quarter, `+counts+` GROUP BY link_id, quarter`+add,
		`INSERT INTO settled_owned SELECT account_id, quarter / 96 AS day, link_id, `+counts+` GROUP BY account_id, day, `+
			`link_id`+add)
	for _, by := range schema.Dimensions() {
		names := fmt.Sprintf(`%d, quarter / 96 AS day, %s AS name, `, dimensionNumber(by), nameOf(by)) + counts
		if slices.Contains(sparse, by) {
			names += fmt.Sprintf(` AND %s <> ''`, nameOf(by))
		}
		statements = append(statements, `INSERT INTO settled_names SELECT link_id, `+names+` GROUP BY link_id, day, name`+add,
			`INSERT INTO settled_owned_names SELECT account_id, `+names+` GROUP BY account_id, day, name`+add)
	}
	return append(statements, `DELETE FROM recent`+ofLinks)
}()

const addTotal = ` ON CONFLICT DO UPDATE SET total = total + excluded.total`

// The clicks of people and of bots in a row of recent or settled_facts.
var (
	peopleOf = fmt.Sprintf("iif(client & %d = %d, 0, total)", maxNameID, botID)
	botsOf   = fmt.Sprintf("iif(client & %d = %d, total, 0)", maxNameID, botID)
)
