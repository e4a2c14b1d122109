package linkstore

// Store is a schema.Database on an engine. Its methods may be called concurrently.
type Store struct {
	db DB
}

// New returns the store in a database.
func New(db DB) *Store { return &Store{db: db} }

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

// Readers implements schema.LinkStore.
func (s *Store) Readers() int { return s.db.Readers() }
