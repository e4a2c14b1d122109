//go:build engines

package postgres_test

import (
	"testing"

	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestOldAttempts(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	raw := openRaw(t, dsn)
	storetest.TestOldAttempts(t, openLinks(t, dsn), func() (n int) {
		testkit.Must(t, raw.QueryRow(t.Context(), `SELECT count(*) FROM attempts`).Scan(&n))
		return n
	})
}
