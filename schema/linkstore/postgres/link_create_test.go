//go:build engines

package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/testkit"
)

// TestConcurrentStores creates links of the same accounts and with the same aliases through several stores, each in an
// order of its own.
func TestConcurrentStores(t *testing.T) {
	t.Parallel()
	const processes, callers, each, aliases = 3, 16, 25, 60
	dsn := engines.Postgres(t)
	var stores [processes]*postgres.Store
	for i := range stores {
		stores[i] = openLinks(t, dsn)
	}
	var accounts [4]schema.Account
	for i := range accounts {
		accounts[i] = schema.Account{Email: fmt.Sprintf("%d@example.org", i), CreatedAt: time.Now()}
		testkit.Must(t, stores[0].CreateAccount(t.Context(), &accounts[i]))
	}
	var created [len(accounts)]atomic.Int64
	var owners [aliases]atomic.Int64
	var group sync.WaitGroup
	for i := range processes * callers {
		group.Go(func() {
			for n := range each {
				owner, alias := (i+n)%len(accounts), (i*7+n*11)%aliases
				link := schema.Link{AccountID: accounts[owner].ID, Hash: fmt.Sprintf("alias-%d", alias), CreatedAt: time.Now()}
				if n%2 == 0 {
					link.Hash = fmt.Sprintf("own-%d-%d", i, n)
				}
				switch err := stores[i%processes].CreateLink(t.Context(), &link); {
				case err == nil:
					created[owner].Add(1)
					if n%2 == 1 && owners[alias].Add(1) > 1 {
						t.Errorf("two links have alias %d", alias)
					}
				case n%2 == 0 || schema.ErrorCode(err) != schema.CodeConflict:
					t.Errorf("create %q: %v", link.Hash, err)
				}
			}
		})
	}
	group.Wait()
	for alias := range owners {
		if owners[alias].Load() != 1 {
			t.Errorf("%[2]d links have alias %[1]d", alias, owners[alias].Load())
		}
	}
	raw := openRaw(t, dsn)
	for i := range accounts {
		var count, links, last int64
		row := raw.QueryRow(t.Context(), `
			SELECT link_count, (SELECT count(*) FROM links WHERE account_id = a.id),
				(SELECT max(ordinal) FROM links WHERE account_id = a.id)
			FROM accounts a WHERE id = $1`, accounts[i].ID)
		testkit.Must(t, row.Scan(&count, &links, &last))
		if want := created[i].Load(); count != want || links != want || last != want {
			t.Errorf("account %d: %d links created, %d in the table, link_count %d, last ordinal %d", i, want, links, count,
				last)
		}
	}
}

// watchedContext reports when a call begins to wait on it.
type watchedContext struct {
	context.Context
	waits *atomic.Bool
}

func (c watchedContext) Done() <-chan struct{} {
	c.waits.Store(true)
	return c.Context.Done()
}

// holdLink inserts a link in a transaction of raw. Inserting the same hash waits until that ends.
func holdLink(t *testing.T, dsn string, accountID int64, hash string, ordinal int64) (raw *pgx.Conn) {
	t.Helper()
	raw = openRaw(t, dsn)
	exec(t, raw, "BEGIN")
	exec(t, raw, `INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
		VALUES ($1, 0, $2, '', true, $3, now())`, accountID, hash, ordinal)
	return raw
}

// awaitWaiter waits until another connection waits for the transaction of raw.
func awaitWaiter(t *testing.T, watch, raw *pgx.Conn) {
	t.Helper()
	testkit.Eventually(t, "a connection waits for the transaction", func() (waits bool) {
		row := watch.QueryRow(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_stat_activity
			WHERE datname = current_database() AND $1::integer = ANY (pg_blocking_pids(pid)))`, raw.PgConn().PID())
		return row.Scan(&waits) == nil && waits
	})
}

// TestRejectedBatch lets another process take hashes between the snapshot of a batch and its insert.
func TestRejectedBatch(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	links, watch := openLinks(t, dsn), openRaw(t, dsn)
	mine, others := schema.Account{Email: "a@example.org"}, schema.Account{Email: "b@example.org"}
	for _, account := range []*schema.Account{&mine, &others} {
		account.CreatedAt = time.Now()
		testkit.Must(t, links.CreateAccount(t.Context(), account))
	}
	hashes := []string{"taken-first", "taken-in-batch", "free-1", "free-2", "free-3"}
	first, second := holdLink(t, dsn, others.ID, hashes[0], 1), holdLink(t, dsn, others.ID, hashes[1], 2)
	errs, created := make([]error, len(hashes)), make([]schema.Link, len(hashes))
	var group sync.WaitGroup
	for i, hash := range hashes {
		ctx := watchedContext{t.Context(), new(atomic.Bool)}
		group.Go(func() {
			created[i] = schema.Link{AccountID: mine.ID, Hash: hash, CreatedAt: time.Now()}
			errs[i] = links.CreateLink(ctx, &created[i])
		})
		testkit.Eventually(t, "the call waits", ctx.waits.Load)
		if i == 0 {
			awaitWaiter(t, watch, first) // the first call is a batch of its own, and the others form the next one
		}
	}
	exec(t, first, "COMMIT")
	awaitWaiter(t, watch, second)
	exec(t, second, "COMMIT")
	group.Wait()
	for i, err := range errs {
		want := schema.Code("")
		if i < 2 {
			want = schema.CodeConflict
		}
		if schema.ErrorCode(err) != want {
			t.Errorf("%s: got error %v, want code %q", hashes[i], err, want)
		}
	}
	for _, link := range created[2:] {
		got, err := schema.FindLink(t.Context(), links, 0, link.Hash)
		if err != nil || got.ID != link.ID || got.Ordinal != link.Ordinal || link.Ordinal < 1 || link.Ordinal > 3 {
			t.Errorf("created %+v, got %+v, error %v", link, got, err)
		}
	}
}

func TestBlockedServer(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	links, raw := openLinks(t, dsn), openRaw(t, dsn)
	owner := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(t, links.CreateAccount(t.Context(), &owner))
	t.Run("calls that wait for a blocked server end with their contexts, as unavailable", func(t *testing.T) {
		const patience = 300 * time.Millisecond
		exec(t, raw, "BEGIN; LOCK TABLE accounts")
		var callers sync.WaitGroup
		for i := range 100 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				begin := time.Now()
				link := schema.Link{AccountID: owner.ID, Hash: fmt.Sprintf("hash-%d", i), CreatedAt: begin}
				err := links.CreateLink(ctx, &link)
				if took := time.Since(begin); schema.ErrorCode(err) != schema.CodeUnavailable || took > patience+2*time.Second {
					t.Errorf("got error %v after %v", err, took)
				}
			})
		}
		callers.Wait()
	})
	t.Run("links are created once it answers again", func(t *testing.T) {
		exec(t, raw, "ROLLBACK")
		link := schema.Link{AccountID: owner.ID, Hash: "hash", CreatedAt: time.Now()}
		testkit.Must(t, links.CreateLink(t.Context(), &link))
	})
}
