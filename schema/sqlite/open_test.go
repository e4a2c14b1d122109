package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/schema"
	linksqlite "linkstream/schema/linkstore/sqlite"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

func TestOpen(t *testing.T) {
	t.Run("accepts any file name", func(t *testing.T) {
		for _, name := range []string{"links.db", "a b?c=d&e#f%41.db", "ссылки;'\".db"} {
			path := filepath.Join(t.TempDir(), name)
			links, err := linksqlite.Open(t.Context(), path)
			testkit.Must(t, err)
			testkit.Must(t, links.Close())
			_, err = os.Stat(path)
			testkit.Must(t, err)
		}
	})
	t.Run("accepts a relative path", func(t *testing.T) {
		t.Chdir(t.TempDir())
		clicks, err := sqlite.OpenClickStore(t.Context(), "clicks.db")
		testkit.Must(t, err)
		testkit.Must(t, clicks.Close())
		_, err = os.Stat("clicks.db")
		testkit.Must(t, err)
	})
	t.Run("names the file that cannot be opened", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "no", "such", "folder.db")
		_, err := linksqlite.Open(t.Context(), path)
		testkit.WantError(t, err, schema.CodeInternal, path)
	})
	t.Run("rejects a file that is not a database", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "links.db")
		testkit.Must(t, os.WriteFile(path, []byte(strings.Repeat("not a database\n", 1000)), 0o600))
		_, err := linksqlite.Open(t.Context(), path)
		testkit.WantError(t, err, schema.CodeInternal, "not a database")
	})
	t.Run("ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := linksqlite.Open(ctx, filepath.Join(t.TempDir(), "links.db"))
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got error %v", err)
		}
	})
}

func TestMigrate(t *testing.T) {
	t.Run("rejects a file of a newer program", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "clicks.db")
		openClicks(t, path).Close()
		raw := sqlitetest.Raw(t, path)
		_, err := raw.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`)
		testkit.Must(t, err)
		_, err = sqlite.OpenClickStore(t.Context(), path)
		testkit.WantError(t, err, schema.CodeInternal, "version 99, made by a newer linkstream")
	})
	t.Run("concurrent calls migrate a new file once", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "links.db")
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				links, err := linksqlite.Open(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				links.Close()
			})
		}
		group.Wait()
		var applied int
		row := sqlitetest.Raw(t, path).QueryRow(`SELECT count(*) FROM goose_db_version WHERE version_id = 1`)
		if err := row.Scan(&applied); err != nil || applied != 1 {
			t.Fatalf("migration 1 was applied %d times, error %v", applied, err)
		}
	})
}

func TestContext(t *testing.T) {
	t.Run("a write that waits for another process ends with its context", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "links.db")
		links := openLinks(t, path)
		other, err := sqlitetest.Raw(t, path).Conn(t.Context())
		testkit.Must(t, err)
		defer other.Close()
		_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
		testkit.Must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		account := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
		testkit.WantCode(t, links.CreateAccount(ctx, &account), schema.CodeUnavailable)
		if _, err := links.AccountByEmail(t.Context(), "a@example.org"); schema.ErrorCode(err) != schema.CodeNotFound {
			t.Fatalf("a read waits for the write lock, or the account was created: %v", err)
		}
		_, err = other.ExecContext(t.Context(), "ROLLBACK")
		testkit.Must(t, err)
		testkit.Must(t, links.CreateAccount(t.Context(), &account))
	})
}

// wantTotal requires that the facts add up to want, and the totals too.
func wantTotal(t *testing.T, path string, want int64) {
	t.Helper()
	var facts, totals int64
	err := sqlitetest.Raw(t, path).QueryRow(`WITH r(total) AS (SELECT coalesce(sum(total), 0) FROM recent)
		SELECT (SELECT coalesce(sum(total), 0) FROM settled_facts) + total,
			(SELECT coalesce(sum(total), 0) FROM settled_totals) + total FROM r`).
		Scan(&facts, &totals)
	if err != nil || facts != want || totals != want {
		t.Fatalf("got %d clicks in facts and %d in totals, want %d, error %v", facts, totals, want, err)
	}
}

func TestClose(t *testing.T) {
	t.Run("ends calls in progress and later ones, and keeps links whose creation succeeded", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "links.db")
		links := openLinks(t, path)
		account := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
		testkit.Must(t, links.CreateAccount(t.Context(), &account))
		var created atomic.Int64
		var group sync.WaitGroup
		running := make(chan struct{})
		for w := range 4 {
			group.Go(func() {
				for i := 0; ; i++ {
					link := schema.Link{AccountID: account.ID, Hash: fmt.Sprintf("%d-%d", w, i), CreatedAt: time.Now()}
					if links.CreateLink(t.Context(), &link) != nil {
						return
					}
					if created.Add(1) == 10 {
						close(running)
					}
				}
			})
		}
		select {
		case <-running:
		case <-time.After(testkit.Patience):
			t.Error("links are not created")
		}
		testkit.Must(t, links.Close())
		group.Wait()
		if _, err := schema.FindLink(t.Context(), links, 0, "0-0"); err == nil {
			t.Fatal("a closed store answers")
		}
		_, total, err := openLinks(t, path).Links(t.Context(), account.ID, schema.LinkFilter{}, 1)
		if err != nil || total < created.Load() {
			t.Fatalf("%d of %d created links are in the file, error %v", total, created.Load(), err)
		}
	})
}
