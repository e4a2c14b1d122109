package sqlite_test

import (
	"path/filepath"
	"testing"

	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestOldCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.db")
	links, raw := openLinks(t, path), sqlitetest.Raw(t, path)
	storetest.TestOldCalls(t, links, func() (n int) {
		testkit.Must(t, raw.QueryRowContext(t.Context(), `SELECT count(*) FROM idempotency_keys`).Scan(&n))
		return n
	}, func(accountID, number int64) {
		_, err := raw.ExecContext(t.Context(), `UPDATE idempotency_keys SET number = ?2
			WHERE account_id = ?1 AND number = (SELECT max(number) FROM idempotency_keys WHERE account_id = ?1)`, accountID,
			number)
		testkit.Must(t, err)
	})
}
