package linkstore

import (
	"linkstream/schema"
	"linkstream/schema/groupcommit"
)

// Store is a schema.Database on an engine. Its methods may be called concurrently.
type Store struct {
	db        DB
	creations *groupcommit.Group[*schema.LinkBatch] // of one link each
}

var _ schema.Database = (*Store)(nil)

// New returns the store in a database.
func New(db DB) *Store {
	s := &Store{db: db}
	s.creations = groupcommit.New(creationLimits, s.createTogether)
	return s
}

// On returns the store in what wrap returns for the database, for tests.
func (s *Store) On(wrap func(DB) DB) *Store { return New(wrap(s.db)) }

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

// Readers implements schema.LinkStore.
func (s *Store) Readers() int { return s.db.Readers() }
