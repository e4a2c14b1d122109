//go:build engines

package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema"
	"linkstream/schema/linkstore/postgres"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestOutage(t *testing.T) {
	engine := enginetest.Own(t, testengines.StartPostgres)
	links := openLinks(t, engine.Addr)
	owner := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(t, links.CreateAccount(t.Context(), &owner))
	t.Run("every call to a stopped server fails as unavailable, and promptly", func(t *testing.T) {
		testkit.Must(t, engine.Stop())
		for name, call := range callsOf(links, owner.ID) {
			testkit.Takes(t, storetest.Promptly, func(int) {
				if err := call(t.Context()); schema.ErrorCode(err) != schema.CodeUnavailable {
					t.Errorf("%s: got error %v", name, err)
				}
			})
		}
	})
	t.Run("calls succeed again once it is back", func(t *testing.T) {
		testkit.Must(t, engine.Start(t.Context()))
		awaitAnswer(t, links)
	})
	t.Run("links that were created survive a kill, without gaps in the ordinals", func(t *testing.T) {
		created := createUntil(t, links, owner.ID, engine.Kill)
		testkit.Must(t, engine.Start(t.Context()))
		awaitAnswer(t, links)
		for _, link := range created {
			got, err := schema.FindLink(t.Context(), links, 0, link.Hash)
			if err != nil || got.ID != link.ID || got.Ordinal != link.Ordinal {
				t.Fatalf("got %+v, error %v, created %+v", got, err, link)
			}
		}
		_, total, err := links.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
		if err != nil || total < int64(len(created)) {
			t.Fatalf("got %d links, created %d, error %v", total, len(created), err)
		}
		var rows int64
		row := openRaw(t, engine.Addr).QueryRow(t.Context(), `SELECT count(*) FROM links WHERE ordinal BETWEEN 1 AND $1`,
			total)
		if err := row.Scan(&rows); err != nil || rows != total {
			t.Fatalf("%d rows for %d ordinals, error %v", rows, total, err)
		}
	})
}

// callsOf returns calls of the methods by name.
func callsOf(links *postgres.Store, accountID int64) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"CreateLink": func(ctx context.Context) error {
			return links.CreateLink(ctx, &schema.Link{AccountID: accountID, Hash: "hash", CreatedAt: time.Now()})
		},
		"LinksByHash": func(ctx context.Context) error {
			_, err := links.LinksByHash(ctx, []schema.LinkKey{{Hash: "hash"}})
			return err
		},
		"EdgeLinks": func(ctx context.Context) error {
			_, err := links.EdgeLinks(ctx, []schema.LinkKey{{Hash: "hash"}})
			return err
		},
		"OwnedLinks": func(ctx context.Context) error {
			_, err := links.OwnedLinks(ctx, accountID, []string{"hash"})
			return err
		},
		"Links": func(ctx context.Context) error {
			_, _, err := links.Links(ctx, accountID, schema.LinkFilter{}, 1)
			return err
		},
		"UpdateLink": func(ctx context.Context) error {
			return links.UpdateLink(ctx, &schema.Link{ID: 1}, schema.LinkEdit{Active: new(true)}, time.Now())
		},
		"CreateFirstAccount": func(ctx context.Context) error {
			return links.CreateFirstAccount(ctx, new(schema.Account), new(schema.Token))
		},
		"filtered Links": func(ctx context.Context) error {
			_, _, err := links.Links(ctx, accountID, schema.LinkFilter{Tag: "hash"}, 1)
			return err
		},
		"LinksByID":    func(ctx context.Context) error { _, err := links.LinksByID(ctx, accountID, []int64{1}); return err },
		"DeleteDomain": func(ctx context.Context) error { return links.DeleteDomain(ctx, 1) },
		"Domains":      func(ctx context.Context) error { _, err := links.Domains(ctx, accountID); return err },
		"SessionByDigest": func(ctx context.Context) error {
			_, _, err := links.SessionByDigest(ctx, [32]byte{}, time.Now())
			return err
		},
		"CountAttempts": func(ctx context.Context) error {
			_, err := links.CountAttempts(ctx, []schema.Attempts{{Window: time.Now(), N: 1}})
			return err
		},
		"Tokens":         func(ctx context.Context) error { _, err := links.Tokens(ctx, accountID); return err },
		"TokenByDigest":  func(ctx context.Context) error { _, _, err := links.TokenByDigest(ctx, [32]byte{}); return err },
		"DomainsByHost":  func(ctx context.Context) error { _, err := links.DomainsByHost(ctx, "example.org"); return err },
		"VerifiedDomain": func(ctx context.Context) error { _, err := links.VerifiedDomain(ctx, "example.org"); return err },
	}
}

// awaitAnswer waits until a look-up is answered. Each connection from before the outage may fail once.
func awaitAnswer(t *testing.T, links *postgres.Store) {
	t.Helper()
	testkit.Succeeds(t, func() error {
		_, err := schema.FindLink(t.Context(), links, 0, "none")
		if schema.ErrorCode(err) == schema.CodeNotFound {
			return nil
		}
		return err
	})
}

// createUntil creates links from several goroutines while end stops the server. It returns those whose creation
// succeeded.
func createUntil(t *testing.T, links *postgres.Store, accountID int64, end func() error) []schema.Link {
	t.Helper()
	const atLeast, callers = 1000, 32
	var mu sync.Mutex
	var created []schema.Link
	var next atomic.Int64
	enough := make(chan struct{})
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for {
				link := schema.Link{AccountID: accountID, Hash: fmt.Sprintf("l%d", next.Add(1)), CreatedAt: time.Now()}
				if err := links.CreateLink(t.Context(), &link); err != nil {
					if schema.ErrorCode(err) != schema.CodeUnavailable {
						t.Errorf("got error %v", err)
					}
					return
				}
				mu.Lock()
				if created = append(created, link); len(created) == atLeast {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	select {
	case <-enough:
	case <-time.After(testkit.Patience):
		t.Error("links are not created fast enough")
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	group.Wait()
	return created
}

func TestContext(t *testing.T) {
	t.Parallel()
	t.Run("a call that waits for a lock ends with its context, as unavailable", func(t *testing.T) {
		dsn := engines.Postgres(t)
		links, raw := openLinks(t, dsn), openRaw(t, dsn)
		exec(t, raw, "BEGIN; LOCK TABLE accounts")
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		account := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
		testkit.WantCode(t, links.CreateAccount(ctx, &account), schema.CodeUnavailable)
		exec(t, raw, "ROLLBACK")
		_, err := links.AccountByEmail(t.Context(), account.Email)
		testkit.WantCode(t, err, schema.CodeNotFound)
	})
}
