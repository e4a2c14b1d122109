package linkstore

import (
	"context"
	"errors"

	"linkstream/schema"
	"linkstream/schema/groupcommit"
	"linkstream/schema/turns"
)

// Store is a schema.Database on an engine. Its methods may be called concurrently.
type Store struct {
	db        DB                                    // repeats what the engine has aborted
	engine    DB                                    // does not
	creations *groupcommit.Group[*schema.LinkBatch] // of one link each
	changes   *turns.Turns                          // of accounts
}

// Bounds of the calls that wait for their account's turn to change something.
const (
	maxWaiting     = 1 << 14
	maxWaitingEach = 1 << 11
)

var _ schema.Database = (*Store)(nil)

// New returns the store in a database.
func New(db DB) *Store {
	s := &Store{db: repeating{db}, engine: db}
	s.creations = groupcommit.New(creationLimits, s.createTogether)
	s.changes = turns.New(turns.Limits{PlacesEach: max(1, db.Readers()*3/4), Waiting: maxWaiting,
		WaitingEach: maxWaitingEach})
	return s
}

// inTurn calls f, which waits for transactions that have locked the account, when it is the account's turn. So the
// calls of an account that wait for a lock have three quarters of the connections at most.
func (s *Store) inTurn(ctx context.Context, accountID int64, f func() error) error {
	client := turns.Account(accountID)
	if err := s.changes.Take(ctx, client, 1); errors.Is(err, turns.ErrFull) {
		return schema.Errorf(schema.CodeUnavailable, "change account %d: %w", accountID, err)
	} else if err != nil {
		return err
	}
	defer s.changes.Leave(client)
	return f()
}

// sendInTurn executes a batch when it is the account's turn.
func (s *Store) sendInTurn(ctx context.Context, accountID int64, b *Batch) error {
	return s.inTurn(ctx, accountID, func() error { return s.db.Send(ctx, b) })
}

// updateInTurn calls f with a transaction when it is the account's turn.
func (s *Store) updateInTurn(ctx context.Context, accountID int64, f func(Conn) error) error {
	return s.inTurn(ctx, accountID, func() error { return s.db.Update(ctx, f) })
}

// updateInTurnOf is updateInTurn for the account that a query finds for an ID.
func (s *Store) updateInTurnOf(ctx context.Context, owner string, id int64, f func(Conn, int64) error) error {
	var account int64
	if err := get(ctx, s.db, value(&account), owner, id); err != nil {
		return err
	}
	return s.updateInTurn(ctx, account, func(tx Conn) error { return f(tx, account) })
}

// On returns the store in what wrap returns for the database, for tests.
func (s *Store) On(wrap func(DB) DB) *Store { return New(wrap(s.engine)) }

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

// Readers implements schema.LinkStore.
func (s *Store) Readers() int { return s.db.Readers() }
