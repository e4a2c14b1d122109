package linkstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"linkstream/schema"
)

// DB is an engine. Its methods may be called concurrently. All errors of a DB have the code that the contracts in
// package schema promise: CodeConflict for a unique column that has the value already, CodeUnavailable if the engine
// does not answer, CodeInternal otherwise.
type DB interface {
	// Conn executes each statement, or each batch, in a transaction of its own. Its Query only reads: a statement that
	// changes rows and returns some goes into a Batch.
	Conn
	// Update calls f with a transaction, and commits unless f returns an error. On SQLite it holds the only lock on
	// writing from the beginning; on Postgres it is READ COMMITTED, so a statement sees what others committed before the
	// statement began.
	Update(ctx context.Context, f func(Conn) error) error
	// View calls f with a transaction that only reads. All its queries read one snapshot.
	View(ctx context.Context, f func(Conn) error) error
	// InsertLinks inserts links with different hashes, and sets their IDs and ordinals, which count on from the account's
	// in the order of links. It inserts nothing and returns ErrNoOwner if an account or a domain does not exist, or
	// CodeConflict if a hash is in use. on is the DB, or a transaction of it. It locks domains, then accounts, and then
	// inserts in the order of domains and hashes, so that several processes do not deadlock.
	InsertLinks(ctx context.Context, on Conn, links []*NewLink) error
	// Readers returns how many queries can run at the same time.
	Readers() int
	Close() error
}

// Conn executes statements.
type Conn interface {
	Query(ctx context.Context, s Statement) (Rows, error)
	// Exec returns how many rows the statement has changed.
	Exec(ctx context.Context, s Statement) (changed int64, err error)
	// Send executes the statements of a batch in order, in one round trip and one transaction, unless one of them fails.
	// An error that a function of the batch returns is returned, but it undoes nothing outside of Update. ErrNoRow if a
	// statement that must change a row changes none: then the engine undoes the batch.
	Send(ctx context.Context, b *Batch) error
}

// Statement is a text with its arguments. Placeholders are $1, $2, …; markers in braces stand for what engines spell
// differently, see the package doc. An argument is nil, an int, int64, bool, string, []byte, time.Time (the zero time
// is NULL), time.Duration (for a CAST to interval), []int64, []string (lists, for {in}), a pointer to one of these, or
// a driver.Valuer.
type Statement struct {
	Text string
	Args []any
	// Variable is true if the text is not a constant: then it is not kept prepared.
	Variable bool
}

// Rows are the rows that a query returns. Next returns false after the last row or an error, which Err returns. Close
// may be called twice.
type Rows interface {
	Next() bool
	// Scan reads the current row. A *time.Time gets UTC, and the zero time for NULL.
	Scan(into ...any) error
	Err() error
	Close()
}

// Batch is a list of statements.
type Batch struct{ Parts []Part }

// Part is a statement of a batch. One of the functions, or Must, may be set.
type Part struct {
	Statement
	Rows    func(Rows) error          // reads the rows that the statement returns
	Changed func(changed int64) error // gets how many rows it has changed
	Must    bool                      // change a row; the statement returns none
}

// ErrAborted is in the chain of the error of a transaction that the engine has rolled back, with CodeUnavailable,
// because of other transactions or of its own pace: it waited too long for a lock, others and it waited for each other,
// or its process stood still. It may succeed when it is repeated.
var ErrAborted = errors.New("aborted")

// ErrNoRow is the outcome of a statement that finds no row.
var ErrNoRow error = schema.Errorf(schema.CodeNotFound, "no row")

// repeating is a DB that repeats what the engine has aborted until that succeeds or the context is done. Between two
// attempts it has no connection, so calls that wait for a lock leave the connections to others. The functions of
// batches and transactions may be called several times. InsertLinks is not repeated.
type repeating struct{ DB }

func (r repeating) Query(ctx context.Context, s Statement) (Rows, error) {
	b := begun{first: true}
	err := again(ctx, func() (err error) {
		if b.Rows, err = r.DB.Query(ctx, s); err != nil {
			return err
		}
		if b.more = b.Rows.Next(); !b.more && errors.Is(b.Rows.Err(), ErrAborted) {
			defer b.Rows.Close()
			return b.Rows.Err()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &b, nil
}

// begun are rows whose first Next has been called.
type begun struct {
	Rows
	first, more bool
}

func (b *begun) Next() bool {
	if b.first {
		b.first = false
		return b.more
	}
	return b.Rows.Next()
}

func (r repeating) Exec(ctx context.Context, s Statement) (changed int64, err error) {
	err = again(ctx, func() (err error) { changed, err = r.DB.Exec(ctx, s); return err })
	return changed, err
}

func (r repeating) Send(ctx context.Context, b *Batch) error {
	return again(ctx, func() error { return r.DB.Send(ctx, b) })
}

func (r repeating) Update(ctx context.Context, f func(Conn) error) error {
	return again(ctx, func() error { return r.DB.Update(ctx, f) })
}

func (r repeating) View(ctx context.Context, f func(Conn) error) error {
	return again(ctx, func() error { return r.DB.View(ctx, f) })
}

// again calls f until it returns another error than ErrAborted, or ctx is done.
func again(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !errors.Is(err, ErrAborted) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(againMin + rand.N(againMin)):
		}
	}
}

// againMin is the shortest pause before a repetition; the longest is twice as long.
const againMin = 10 * time.Millisecond

// wrap adds the operation that failed to err, and keeps its code; nil stays nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	code := schema.ErrorCode(err)
	if code == schema.CodeInternal && errors.Is(err, context.DeadlineExceeded) { // while the call waited for others
		code = schema.CodeUnavailable
	}
	return schema.Errorf(code, format+": %w", append(args, err)...)
}

func statement(text string, args []any) Statement { return Statement{Text: text, Args: args} }

// exec executes a statement.
func exec(ctx context.Context, c Conn, text string, args ...any) (changed int64, err error) {
	return c.Exec(ctx, statement(text, args))
}

// execOne executes a statement. CodeNotFound if it changes no row.
func execOne(ctx context.Context, c Conn, text string, args ...any) error {
	return atLeastOne(exec(ctx, c, text, args...))
}

func atLeastOne(changed int64, err error) error {
	if err == nil && changed == 0 {
		return ErrNoRow
	}
	return err
}

// get scans the first row of a query. CodeNotFound if there is none.
func get(ctx context.Context, c Conn, into []any, text string, args ...any) error {
	rows, err := c.Query(ctx, statement(text, args))
	if err != nil {
		return err
	}
	return first(rows, into)
}

func first(rows Rows, into []any) error {
	defer rows.Close()
	if rows.Next() {
		return rows.Scan(into...)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return ErrNoRow
}

// write scans the first row that a statement returns which changes rows. CodeNotFound if there is none.
func write(ctx context.Context, c Conn, into []any, text string, args ...any) error {
	var b Batch
	b.get(into, text, args...)
	return c.Send(ctx, &b)
}

// list scans all rows of a query, each into fields of an item.
func list[T any](ctx context.Context, c Conn, fields func(*T) []any, text string, args ...any) ([]T, error) {
	rows, err := c.Query(ctx, statement(text, args))
	if err != nil {
		return nil, err
	}
	return collect(rows, fields)
}

func collect[T any](rows Rows, fields func(*T) []any) (items []T, err error) {
	var item, none T
	err = each(rows, fields(&item), func() error {
		items = append(items, item)
		item = none
		return nil
	})
	return items, err
}

// each scans every row and calls f after it.
func each(rows Rows, into []any, f func() error) error {
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := f(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// value returns where a query with one column is scanned to.
func value[T any](v *T) []any { return []any{v} }

// exec adds a statement.
func (b *Batch) exec(text string, args ...any) {
	b.Parts = append(b.Parts, Part{Statement: statement(text, args)})
}

// execOne adds a statement that has to change a row; otherwise the batch is undone, and its outcome is CodeNotFound.
func (b *Batch) execOne(text string, args ...any) {
	b.Parts = append(b.Parts, Part{Statement: statement(text, args), Must: true})
}

// count adds a statement and sets changed to the number of rows that it has changed.
func (b *Batch) count(changed *int64, text string, args ...any) {
	keep := func(n int64) error { *changed = n; return nil }
	b.Parts = append(b.Parts, Part{Statement: statement(text, args), Changed: keep})
}

// get adds a statement whose first row is scanned; without one the outcome of the batch is CodeNotFound.
func (b *Batch) get(into []any, text string, args ...any) {
	b.rows(func(rows Rows) error { return first(rows, into) }, text, args...)
}

// rows adds a statement whose rows are read by read.
func (b *Batch) rows(read func(Rows) error, text string, args ...any) {
	b.Parts = append(b.Parts, Part{Statement: statement(text, args), Rows: read})
}

// Dialect has the spelling of each marker: of {name}, or of {name: a b}, where %1 and %2 stand for a and b.
type Dialect map[string]string

// Expand replaces the markers in a text. It panics at a marker that the dialect does not have: texts are constants.
func (d Dialect) Expand(text string) string {
	var expanded strings.Builder
	for {
		before, rest, found := cutMarker(text)
		expanded.WriteString(before)
		if !found {
			return expanded.String()
		}
		marker, after, closed := strings.Cut(rest, "}")
		name, args, _ := strings.Cut(marker, ": ")
		spelling, known := d[name]
		if !closed || !known {
			panic("linkstore: unknown marker {" + name + "}")
		}
		for i, arg := range strings.Fields(args) {
			spelling = strings.ReplaceAll(spelling, "%"+string(rune('1'+i)), arg)
		}
		expanded.WriteString(spelling)
		text = after
	}
}

// cutMarker cuts a text at the first brace that a small letter follows.
func cutMarker(text string) (before, after string, found bool) {
	for i := range len(text) - 1 {
		if c := text[i+1]; text[i] == '{' && 'a' <= c && c <= 'z' {
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}
