package storetest

import (
	"context"
	"errors"
	"slices"

	"linkstream/schema/linkstore"
)

// Step is the next action of a store: a statement, the beginning of a transaction or a batch, or the commit of a
// transaction of Update. The Text of all but a statement is "".
type Step struct {
	Text   string
	Nested bool // in a transaction or a batch
}

// ErrInEngine is the error of a statement that the engine itself refuses, after it has executed the statements before.
var ErrInEngine = errors.New("refused by the engine")

// refused is a statement that engines prepare, and fail to execute: its argument is no JSON.
const refused = `SELECT {json: '['} ->> 'a'`

// Watched returns the store with a function that is called before each step. An error becomes the step's outcome;
// ErrInEngine replaces the statement by one that fails.
func Watched(store *linkstore.Store, before func(context.Context, Step) error) *linkstore.Store {
	return store.On(func(db linkstore.DB) linkstore.DB { return watchedDB{db, watchedConn{db, before, false}} })
}

type watchedDB struct {
	linkstore.DB
	conn watchedConn
}

func (db watchedDB) Query(ctx context.Context, s linkstore.Statement) (linkstore.Rows, error) {
	return db.conn.Query(ctx, s)
}

func (db watchedDB) Exec(ctx context.Context, s linkstore.Statement) (int64, error) {
	return db.conn.Exec(ctx, s)
}

func (db watchedDB) Send(ctx context.Context, b *linkstore.Batch) error { return db.conn.Send(ctx, b) }

func (db watchedDB) Update(ctx context.Context, f func(linkstore.Conn) error) error {
	if err := db.conn.before(ctx, Step{}); err != nil {
		return err
	}
	return db.DB.Update(ctx, func(tx linkstore.Conn) error {
		if err := f(watchedConn{tx, db.conn.before, true}); err != nil {
			return err
		}
		return db.conn.before(ctx, Step{Nested: true})
	})
}

func (db watchedDB) View(ctx context.Context, f func(linkstore.Conn) error) error {
	if err := db.conn.before(ctx, Step{}); err != nil {
		return err
	}
	return db.DB.View(ctx, func(tx linkstore.Conn) error { return f(watchedConn{tx, db.conn.before, true}) })
}

type watchedConn struct {
	linkstore.Conn
	before func(context.Context, Step) error
	nested bool
}

// statement returns what to execute in the place of a statement.
func (c watchedConn) statement(
	ctx context.Context, s linkstore.Statement, nested bool,
) (linkstore.Statement, error) {
	err := c.before(ctx, Step{s.Text, nested})
	if errors.Is(err, ErrInEngine) {
		return linkstore.Statement{Text: refused}, nil
	}
	return s, err
}

func (c watchedConn) Query(ctx context.Context, s linkstore.Statement) (linkstore.Rows, error) {
	s, err := c.statement(ctx, s, c.nested)
	if err != nil {
		return nil, err
	}
	return c.Conn.Query(ctx, s)
}

func (c watchedConn) Exec(ctx context.Context, s linkstore.Statement) (int64, error) {
	s, err := c.statement(ctx, s, c.nested)
	if err != nil {
		return 0, err
	}
	return c.Conn.Exec(ctx, s)
}

func (c watchedConn) Send(ctx context.Context, b *linkstore.Batch) error {
	err := c.before(ctx, Step{"", c.nested})
	parts := slices.Clone(b.Parts)
	for i := 0; i < len(parts) && err == nil; i++ {
		parts[i].Statement, err = c.statement(ctx, parts[i].Statement, true)
	}
	if err != nil {
		return err
	}
	return c.Conn.Send(ctx, &linkstore.Batch{Parts: parts})
}
