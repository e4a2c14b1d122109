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

// New returns the store in a database.
func New(db DB) *Store {
	s := &Store{db: db}
	s.creations = groupcommit.New(creationLimits, s.createTogether)
	return s
}

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

// Readers implements schema.LinkStore.
func (s *Store) Readers() int { return s.db.Readers() }
