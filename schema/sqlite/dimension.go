package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"linkstream/schema"
)

// listed are the dimensions whose names come from lists: devices, browsers, operating systems, languages and countries
// have some hundred together. Their names have numbers in table names, and all numbers of a click are one integer, the
// client, in the tables recent and settled_facts. The first dimension has the lowest bits. Files keep their order.
var listed = inClient(schema.Dimensions(schema.FixedNames, schema.PickedNames))

// written are the dimensions whose names are written by visitors and owners of links. They have no numbers, but columns
// of their own. Files keep this order, too.
var written = [writtenColumns]schema.Dimension(withColumns(schema.Dimensions(schema.OwnedNames, schema.MadeUpNames)))

// sparse are written dimensions that most clicks have no name of. The tables of settled names have no rows for clicks
// without one.
var sparse = []schema.Dimension{schema.ByPath}

// nameColumns are the columns of a row's names in the tables recent and settled_facts: see factNames.
var nameColumns = func() string {
	columns := "client"
	for _, by := range written {
		columns += ", " + string(by)
	}
	return columns
}()

// inClient returns dimensions whose names have room in a client.
func inClient(listed []schema.Dimension) []schema.Dimension {
	if len(listed)*clientBits > maxClientBits {
		panic(fmt.Sprintf("sqlite: a client has %d bits, and no room for the names of %v", maxClientBits, listed))
	}
	return listed
}

// withColumns returns dimensions, all of whose names have columns.
func withColumns(written []schema.Dimension) []schema.Dimension {
	if len(written) != writtenColumns {
		panic(fmt.Sprintf("sqlite: the tables have %d columns of names, not one for each of %v", writtenColumns, written))
	}
	return written
}

const (
	// clientBits is how many bits a name has in a client, which has room for six of maxClientBits.
	clientBits    = 10
	maxClientBits = 63
	// writtenColumns is how many columns of names the tables recent and settled_facts have.
	writtenColumns = 4
	// maxNameID is the highest number of a name. Further names are counted as schema.OtherName.
	maxNameID = 1<<clientBits - 1
	// maxKnownNames bounds the names in memory, which include those without a number of their own.
	maxKnownNames = 10_000

	// Numbers that each file has from the beginning. No name has the number 0.
	botID   = 1
	otherID = 2
)

// dimensionNumber returns the value of settled_names.dimension.
func dimensionNumber(by schema.Dimension) int {
	if i := slices.Index(written[:], by); i >= 0 {
		return -i
	}
	return 1 + slices.Index(listed, by)
}

// nameOf returns the expression of a name in the tables recent and settled_facts: a number, or the name itself if it is
// not listed.
func nameOf(by schema.Dimension) string {
	if slices.Contains(written[:], by) {
		return string(by)
	}
	return fmt.Sprintf("client >> %d & %d", clientBits*slices.Index(listed, by), maxNameID)
}

func isBot(client int64) bool { return client&maxNameID == botID }

const quartersPerDay = 24 * 4

// quarterOf returns the quarter of an hour of t, counted from 1970-01-01.
func quarterOf(t time.Time) int64 { return schema.QuarterNumber(t) }

const secondsPerQuarter = int64(schema.ReportResolution / time.Second)

// nameIDs remembers the numbers of names. They do not change.
type nameIDs struct {
	known   map[string]int64
	columns [][]string // scratch
}

const (
	addName = `INSERT INTO names (name) SELECT ?1 WHERE (SELECT max(id) FROM names) < ?2 ON CONFLICT DO NOTHING`
	idOf    = `SELECT id FROM names WHERE name = ?`
)

// clients appends the client of each click of a batch to dst. It returns the names that have no number yet.
func (n *nameIDs) clients(dst []int64, b *schema.ClickBatch) (_ []int64, unknown []string) {
	n.columns = n.columns[:0]
	for _, by := range listed {
		n.columns = append(n.columns, *b.Names(by))
	}
	for i := range b.LinkID {
		client := int64(0)
		for at, names := range n.columns {
			id := n.known[names[i]]
			if id == 0 && !slices.Contains(unknown, names[i]) {
				unknown = append(unknown, names[i])
			}
			client |= id << (clientBits * at)
		}
		dst = append(dst, client)
	}
	clear(n.columns)
	return dst, unknown
}

// learn gives names a number. The numbers are committed before the batch is, and stay if it is not.
func (n *nameIDs) learn(ctx context.Context, db *database, names []string) error {
	if len(n.known) > maxKnownNames {
		clear(n.known)
	}
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

// nameID returns the number of a name, which it adds to the table if there is room.
func nameID(ctx context.Context, tx *sql.Tx, name string) (id int64, err error) {
	if _, err = tx.ExecContext(ctx, addName, name, maxNameID); err != nil {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, idOf, name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return otherID, nil
	}
	return id, err
}

// listedNames are the names of the numbers in a client.
type listedNames map[int64]string

const allNames = `SELECT id, name FROM names`

// readNames reads all names that have a number. Its arguments are the results of the query allNames.
func readNames(rows *sql.Rows, err error) (listedNames, error) {
	names := listedNames{}
	err = forEachRow(rows, err, func() error {
		var id int64
		var name string
		err := rows.Scan(&id, &name)
		names[id] = name
		return err
	})
	return names, err
}

// name returns the name of a dimension in a row of the tables recent and settled_facts.
func (n listedNames) name(by schema.Dimension, row *factNames) string {
	if i := slices.Index(written[:], by); i >= 0 {
		return row.written[i]
	}
	return n[row.client>>(clientBits*slices.Index(listed, by))&maxNameID]
}

// factNames are the names of a row of the tables recent and settled_facts.
type factNames struct {
	client  int64
	written [writtenColumns]string
}

// into returns where to scan nameColumns.
func (n *factNames) into() []any {
	into := []any{&n.client}
	for i := range n.written {
		into = append(into, &n.written[i])
	}
	return into
}
