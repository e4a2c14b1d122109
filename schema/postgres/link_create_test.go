package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/postgres"
)

// TestNodes has several nodes create links of the same accounts, and with the same aliases, each in an order of its own.
func TestNodes(t *testing.T) {
	t.Parallel()
	const nodes, callers, each, aliases = 3, 16, 25, 60
	dsn := engines.Postgres(t)
	var stores [nodes]*postgres.Links
	for i := range stores {
		stores[i] = openLinks(t, dsn)
	}
	var accounts [4]schema.Account
	for i := range accounts {
		accounts[i] = schema.Account{Email: fmt.Sprintf("%d@example.org", i), CreatedAt: time.Now()}
		if err := stores[0].CreateAccount(t.Context(), &accounts[i]); err != nil {
			t.Fatal(err)
		}
	}
	var created [len(accounts)]atomic.Int64
	var owners [aliases]atomic.Int64
	var group sync.WaitGroup
	for i := range nodes * callers {
		group.Go(func() {
			for n := range each {
				owner, alias := (i+n)%len(accounts), (i*7+n*11)%aliases
				link := schema.Link{AccountID: accounts[owner].ID, Hash: fmt.Sprintf("alias-%d", alias), CreatedAt: time.Now()}
				if n%2 == 0 {
					link.Hash = fmt.Sprintf("own-%d-%d", i, n)
				}
				switch err := stores[i%nodes].CreateLink(t.Context(), &link); {
				case err == nil:
					created[owner].Add(1)
					if n%2 == 1 && owners[alias].Add(1) > 1 {
						t.Errorf("alias %d was given twice", alias)
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
			t.Errorf("alias %d was given %d times", alias, owners[alias].Load())
		}
	}
	raw := openRaw(t, dsn)
	for i := range accounts {
		var count, links, last int64
		row := raw.QueryRow(t.Context(), `
			SELECT link_count, (SELECT count(*) FROM links WHERE account_id = a.id),
				(SELECT max(ordinal) FROM links WHERE account_id = a.id)
			FROM accounts a WHERE id = $1`, accounts[i].ID)
		if err := row.Scan(&count, &links, &last); err != nil {
			t.Fatal(err)
		}
		if want := created[i].Load(); count != want || links != want || last != want {
			t.Errorf("account %d: created %d, there are %d, counted %d, last ordinal %d", i, want, links, count, last)
		}
	}
}

func TestCrowd(t *testing.T) {
	t.Parallel()
	dsn := engines.Postgres(t)
	links, raw := openLinks(t, dsn), openRaw(t, dsn)
	owner := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	if err := links.CreateAccount(t.Context(), &owner); err != nil {
		t.Fatal(err)
	}
	t.Run("calls that wait for a server that does not answer end with their contexts, as unavailable", func(t *testing.T) {
		const patience = 300 * time.Millisecond
		exec(t, raw, "BEGIN; LOCK TABLE accounts")
		var crowd sync.WaitGroup
		for i := range 100 {
			crowd.Go(func() {
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
		crowd.Wait()
	})
	t.Run("links are created again once it answers", func(t *testing.T) {
		exec(t, raw, "ROLLBACK")
		link := schema.Link{AccountID: owner.ID, Hash: "hash", CreatedAt: time.Now()}
		if err := links.CreateLink(t.Context(), &link); err != nil {
			t.Fatal(err)
		}
	})
}
