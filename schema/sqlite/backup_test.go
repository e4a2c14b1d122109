package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"linkstream/schema"
	"linkstream/schema/linkstore"
	linksqlite "linkstream/schema/linkstore/sqlite"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitefile"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

// openLinks is openClicks for links.
func openLinks(t testing.TB, path string) *linkstore.Store {
	t.Helper()
	links, err := sqlitetest.Open(t.Context(), path)
	testkit.Must(t, err)
	t.Cleanup(func() { links.Close() })
	return links
}

// account creates an account whose email has a number.
func account(ctx context.Context, links *linkstore.Store, number int) error {
	return links.CreateAccount(ctx, &schema.Account{Email: fmt.Sprintf("%d@example.com", number), PasswordHash: "x",
		CreatedAt: time.Now()})
}

func TestCopy(t *testing.T) {
	t.Run("has earlier commits, while others write", func(t *testing.T) {
		dir := t.TempDir()
		from := filepath.Join(dir, "a b?c=d&e.db")
		links := openLinks(t, from)
		ctx, stop := context.WithCancel(t.Context())
		committed := make(chan int)
		var writer sync.WaitGroup
		writer.Go(func() {
			defer close(committed)
			for n := 0; ctx.Err() == nil; n++ {
				if err := account(t.Context(), links, n); err != nil {
					t.Error(err)
					return
				}
				select {
				case committed <- n:
				default:
				}
			}
		})
		for i := range 5 {
			last, ok := <-committed
			if !ok {
				t.Fatal("the writer has ended")
			}
			to := filepath.Join(dir, fmt.Sprintf("copy %d.db", i))
			testkit.Must(t, sqlitefile.Copy(t.Context(), from, to))
			var accounts, highest int
			row := sqlitetest.Raw(t, to).QueryRow(`SELECT count(*), max(cast(replace(email, '@example.com', '') AS INTEGER)) ` +
				`FROM accounts`)
			testkit.Must(t, row.Scan(&accounts, &highest))
			if highest < last || accounts != highest+1 {
				t.Errorf("the copy has %d accounts up to number %d; number %d was committed before", accounts, highest, last)
			}
		}
		stop()
		writer.Wait()
	})
	t.Run("has the write-ahead log of a killed process", func(t *testing.T) {
		dir := t.TempDir()
		links := openLinks(t, filepath.Join(dir, "links.db"))
		testkit.Must(t, account(t.Context(), links, 1))
		for _, name := range []string{"links.db", "links.db-wal"} {
			content, err := os.ReadFile(filepath.Join(dir, name))
			testkit.Must(t, err)
			testkit.Must(t, os.WriteFile(filepath.Join(dir, "killed-"+name), content, 0o600))
		}
		to := filepath.Join(dir, "copy.db")
		testkit.Must(t, sqlitefile.Copy(t.Context(), filepath.Join(dir, "killed-links.db"), to))
		var accounts int
		testkit.Must(t, sqlitetest.Raw(t, to).QueryRow(`SELECT count(*) FROM accounts`).Scan(&accounts))
		testkit.Equal(t, "accounts", accounts, 1)
	})
	t.Run("has the schema of its source, whichever that is", func(t *testing.T) {
		dir := t.TempDir()
		from, to := filepath.Join(dir, "links.db"), filepath.Join(dir, "copy.db")
		older := fstest.MapFS{"00001_first.sql": {Data: []byte("CREATE TABLE first (x INTEGER);")}}
		testkit.Must(t, sqlitetest.MigrateTo(t.Context(), from, older, 1))
		before := sqlitetest.Catalogue(t, from)
		testkit.Must(t, sqlitefile.Copy(t.Context(), from, to))
		testkit.Equal(t, "schema", sqlitetest.Catalogue(t, from), before)
		testkit.Equal(t, "schema of the copy", sqlitetest.Catalogue(t, to), before)
	})
	t.Run("does not give the id of a deleted row again", func(t *testing.T) {
		dir := t.TempDir()
		from, to := filepath.Join(dir, "links.db"), filepath.Join(dir, "copy.db")
		testkit.Must(t, account(t.Context(), openLinks(t, from), 1))
		_, err := sqlitetest.Raw(t, from).Exec(`DELETE FROM accounts`)
		testkit.Must(t, err)
		testkit.Must(t, sqlitefile.Copy(t.Context(), from, to))
		later := schema.Account{Email: "later@example.com", CreatedAt: time.Now()}
		testkit.Must(t, openLinks(t, to).CreateAccount(t.Context(), &later))
		testkit.Equal(t, "id", later.ID, 2)
	})
	for name, broken := range map[string]func(t *testing.T, from, to *string) context.Context{
		"a file that does not exist": func(t *testing.T, from, _ *string) context.Context {
			*from = filepath.Join(filepath.Dir(*from), "missing.db")
			return t.Context()
		},
		"a context that is done": func(t *testing.T, _, _ *string) context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx
		},
		"a file that is not a database": func(t *testing.T, from, _ *string) context.Context {
			testkit.Must(t, os.WriteFile(*from, make([]byte, 10000), 0o600))
			return t.Context()
		},
	} {
		t.Run("leaves no file after "+name, func(t *testing.T) {
			dir := t.TempDir()
			from, to := filepath.Join(dir, "links.db"), filepath.Join(dir, "copy.db")
			openLinks(t, from).Close()
			ctx := broken(t, &from, &to)
			if err := sqlitefile.Copy(ctx, from, to); err == nil {
				t.Error("no error")
			}
			for _, path := range []string{to, filepath.Join(dir, "missing.db")} {
				if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s is there, error %v", path, err)
				}
			}
		})
	}
}

func TestSizes(t *testing.T) {
	dir := t.TempDir()
	linksPath, clicksPath := filepath.Join(dir, "links.db"), filepath.Join(dir, "clicks.db")
	openLinks(t, linksPath)
	openClicks(t, clicksPath)
	check := func(links, clicks int64) {
		got, err := linksqlite.CountLinks(t.Context(), linksPath)
		testkit.Must(t, err)
		testkit.Equal(t, "links", got, links)
		got, err = sqlite.CountOf(t.Context(), clicksPath)
		testkit.Must(t, err)
		testkit.Equal(t, "clicks", got, clicks)
	}
	check(0, 0)
	_, err := sqlitetest.Raw(t, linksPath).Exec(`
		INSERT INTO accounts (id, email, password_hash, suspended, link_count, created_at) VALUES (1, 'a', '', 0, 2, 0);
		INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
		VALUES (1, 0, 'a', '', 1, 1, 0), (1, 0, 'b', '', 1, 2, 0), (1, 0, 'deleted', '', 0, -3, 0)`)
	testkit.Must(t, err)
	_, err = sqlitetest.Raw(t, clicksPath).Exec(`INSERT INTO settled_totals VALUES (1, 10), (2, 20)`)
	testkit.Must(t, err)
	check(2, 30)
}
