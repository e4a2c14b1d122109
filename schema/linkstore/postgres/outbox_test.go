//go:build engines

package postgres_test

import (
	"testing"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestMaxPending(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	store, raw := openLinks(t, dsn), openRaw(t, dsn)
	storetest.TestMaxPending(t, store, func(entries int) {
		exec(t, raw, `INSERT INTO outbox (changes) SELECT 'link/0/many' FROM generate_series(1, $1)`, entries)
	})
}

// An older transaction may commit after a younger one. A restored database may be at a time before the position.
func TestPendingChangesOfOlderTransactions(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	store, older, younger := openLinks(t, dsn), openRaw(t, dsn), openRaw(t, dsn)
	const insert = `INSERT INTO outbox (changes) VALUES ($1)`
	exec(t, older, "BEGIN")
	exec(t, older, insert, "link/0/older")
	exec(t, younger, insert, "link/0/younger")
	pending, err := store.PendingChanges(t.Context(), schema.OutboxPosition{})
	testkit.Must(t, err)
	testkit.Equal(t, "changes before the older transaction ends", pending.Changes, []schema.Change{{Hash: "younger"}})
	exec(t, older, "COMMIT")
	before := pending.Next
	pending, err = store.PendingChanges(t.Context(), before)
	testkit.Must(t, err)
	testkit.Equal(t, "changes afterwards", pending.Changes, []schema.Change{{Hash: "older"}})
	pending, err = store.PendingChanges(t.Context(), schema.OutboxPosition{Next: before.Next})
	testkit.Must(t, err)
	testkit.Equal(t, "changes after a restart", pending.Changes, []schema.Change{{Hash: "older"}, {Hash: "younger"}})
	before.Next += 1_000_000
	pending, err = store.PendingChanges(t.Context(), before)
	testkit.Must(t, err)
	testkit.Equal(t, "changes of a restored database", len(pending.Changes), 2)
}
