package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"linkstream/schema"
)

const quartersPerDay = 24 * 4

// quarterOf returns the quarter of an hour of t, counted from 1970-01-01.
func quarterOf(t time.Time) int64 { return t.Unix() / int64(schema.ReportResolution/time.Second) }

const (
	// maxNameID is the highest number of a name that fits into recent.client. The names come from lists, which have some
	// hundred together: those that are not in them are counted as schema.OtherName, and countries have two letters.
	maxNameID = 1<<clientBits - 1
	// clientBits is how many bits of recent.client a name has.
	clientBits = 12
	// maxKnownNames bounds the names in memory.
	maxKnownNames = 10_000
)

// deviceOf returns the number of the device in recent.client.
func deviceOf(client int64) int64 { return client >> (4 * clientBits) }

// nameIDs remembers the numbers of names. They are not 0, and do not change.
type nameIDs struct {
	known map[string]int64
}

func newNameIDs() nameIDs { return nameIDs{map[string]int64{}} }

const (
	addName = `INSERT INTO names (name) SELECT ?1 WHERE (SELECT coalesce(max(id), 0) FROM names) < ?2 ON CONFLICT DO NOTHING`
	idOf    = `SELECT id FROM names WHERE name = ?`
)

// clients appends recent.client of each click of a batch to dst. It returns the names that have no number yet.
func (n *nameIDs) clients(dst []int64, b *schema.ClickBatch) (_ []int64, unknown []string) {
	for i := range b.Device {
		client := int64(0)
		for _, name := range [...]string{string(b.Device[i]), b.Browser[i], b.OS[i], b.Language[i], b.Country[i]} {
			id := n.known[name]
			if id == 0 && !slices.Contains(unknown, name) {
				unknown = append(unknown, name)
			}
			client = client<<clientBits | id
		}
		dst = append(dst, client)
	}
	return dst, unknown
}

// learn gives names a number. The numbers are committed before the batch is, and stay if it is not.
func (n *nameIDs) learn(ctx context.Context, db *database, names []string) error {
	if len(n.known) > maxKnownNames {
		clear(n.known)
	}
	// Bots are told from people by the number.
	names = append(names, string(schema.Bot))
	ids := make([]int64, len(names))
	err := db.update(ctx, func(tx *sql.Tx) (err error) {
		for i, name := range names {
			if ids[i], err = nameID(ctx, tx, name); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		for i, name := range names {
			n.known[name] = ids[i]
		}
	}
	return err
}

// nameID returns the number of a name, which it adds to the table if needed.
func nameID(ctx context.Context, tx *sql.Tx, name string) (id int64, err error) {
	// These have numbers of their own before there are too many.
	for _, name := range []string{schema.OtherName, string(schema.Bot), name} {
		if _, err = tx.ExecContext(ctx, addName, name, maxNameID); err != nil {
			return 0, err
		}
	}
	err = tx.QueryRowContext(ctx, idOf, name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) || id > maxNameID {
		err = tx.QueryRowContext(ctx, idOf, schema.OtherName).Scan(&id)
	}
	return id, err
}
