package sqlitetest_test

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "links.db")
	t.Run("concurrent calls open one file", func(t *testing.T) {
		var opening sync.WaitGroup
		for range 4 {
			opening.Go(func() {
				store, err := sqlitetest.Open(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				defer store.Close()
				account := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
				if err := store.CreateAccount(t.Context(), &account); err != nil && schema.ErrorCode(err) != schema.CodeConflict {
					t.Error(err)
				}
			})
		}
		opening.Wait()
	})
	t.Run("a file that exists is kept", func(t *testing.T) {
		store, err := sqlitetest.Open(t.Context(), path)
		testkit.Must(t, err)
		defer testkit.Close(t, store)
		account, err := store.AccountByEmail(t.Context(), "a@example.org")
		testkit.Must(t, err)
		testkit.Equal(t, "ID", account.ID, 1)
	})
	t.Run("another file is empty", func(t *testing.T) {
		store, err := sqlitetest.Open(t.Context(), filepath.Join(dir, "other.db"))
		testkit.Must(t, err)
		defer testkit.Close(t, store)
		_, err = store.AccountByEmail(t.Context(), "a@example.org")
		testkit.WantCode(t, err, schema.CodeNotFound)
	})
	t.Run("clicks have a file of their own", func(t *testing.T) {
		store, err := sqlitetest.OpenClickStore(t.Context(), filepath.Join(dir, "clicks.db"))
		testkit.Must(t, err)
		defer testkit.Close(t, store)
		marks, err := store.LaneMarks(t.Context(), []schema.Lane{{}})
		testkit.Must(t, err)
		testkit.Equal(t, "mark", marks[0], 0)
	})
}
