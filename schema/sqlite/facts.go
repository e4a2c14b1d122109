package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"time"

	"linkstream/schema"
)

// factKey is the primary key of table facts, with names instead of their numbers.
type factKey struct {
	link, quarter, account                           int64
	device, browser, os, language, country, referrer string
}

// quarterOf returns the quarter of an hour of t, counted from 1970-01-01.
func quarterOf(t time.Time) int64 {
	return t.Truncate(schema.ReportResolution).Unix() / int64(schema.ReportResolution/time.Second)
}

// compare orders rows of one page together. The order among rows of a quarter does not matter.
func (k factKey) compare(o factKey) int {
	if k.link != o.link {
		return cmp.Compare(k.link, o.link)
	}
	return cmp.Compare(k.quarter, o.quarter)
}

func (c *ClickStore) insertFacts(ctx context.Context, tx *sql.Tx, a *aggregate) error {
	rows := c.facts.begin(ctx, tx)
	for _, row := range a.facts.sorted {
		key := row.key
		var ids [5]int64
		for i, name := range [...]string{key.device, key.browser, key.os, key.language, key.country} {
			var err error
			if ids[i], err = a.ids.id(ctx, tx, name); err != nil {
				return err
			}
		}
		err := rows.add(ctx, key.link, key.quarter, key.account, ids[0], ids[1], ids[2], ids[3], ids[4], key.referrer, row.clicks)
		if err != nil {
			return err
		}
	}
	return rows.flush(ctx)
}

// maxNameIDs bounds the names in memory. Those that come from lists are far fewer.
const maxNameIDs = 10_000

// nameIDs remembers the numbers of names.
type nameIDs struct {
	known map[string]int64
	new   map[string]int64 // of the transaction under way
}

func newNameIDs() nameIDs { return nameIDs{map[string]int64{}, map[string]int64{}} }

const (
	addName = `INSERT INTO names (name) VALUES (?) ON CONFLICT DO NOTHING`
	idOf    = `SELECT id FROM names WHERE name = ?`
)

// id returns the number of a name, which it adds to the table if needed.
func (n *nameIDs) id(ctx context.Context, tx *sql.Tx, name string) (int64, error) {
	if id, ok := n.known[name]; ok {
		return id, nil
	}
	if id, ok := n.new[name]; ok {
		return id, nil
	}
	var id int64
	if _, err := tx.ExecContext(ctx, addName, name); err != nil {
		return 0, err
	}
	err := tx.QueryRowContext(ctx, idOf, name).Scan(&id)
	n.new[name] = id
	return id, err
}

// end ends a transaction. Numbers that it has given are those of names only if it is committed.
func (n *nameIDs) end(committed bool) {
	if len(n.known) > maxNameIDs {
		clear(n.known)
	}
	if committed {
		for name, id := range n.new {
			n.known[name] = id
		}
	}
	clear(n.new)
}
