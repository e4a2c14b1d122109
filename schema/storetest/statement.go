package storetest

import (
	"context"

	"linkstream/schema/linkstore"
)

// Step is something that a store is about to do: a statement, or the beginning of a transaction or a batch, whose Text
// is "".
type Step struct {
	Text   string
	Nested bool // in a transaction or a batch
}

// Watched returns the store with a function that is called before each step. An error becomes the step's outcome.
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
	return db.DB.Update(ctx, func(tx linkstore.Conn) error { return f(watchedConn{tx, db.conn.before, true}) })
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

func (c watchedConn) Query(ctx context.Context, s linkstore.Statement) (linkstore.Rows, error) {
	if err := c.before(ctx, Step{s.Text, c.nested}); err != nil {
		return nil, err
	}
	return c.Conn.Query(ctx, s)
}

func (c watchedConn) Exec(ctx context.Context, s linkstore.Statement) (int64, error) {
	if err := c.before(ctx, Step{s.Text, c.nested}); err != nil {
		return 0, err
	}
	return c.Conn.Exec(ctx, s)
}

func (c watchedConn) Send(ctx context.Context, b *linkstore.Batch) error {
	if err := c.before(ctx, Step{"", c.nested}); err != nil {
		return err
	}
	for i := range b.Parts {
		if err := c.before(ctx, Step{b.Parts[i].Text, true}); err != nil {
			return err
		}
	}
	return c.Conn.Send(ctx, b)
}
