package auth_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/auth"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
)

// usesStore counts the writes of uses, and refuses them while broken.
type usesStore struct {
	*linkstore.Store
	broken atomic.Bool
	writes atomic.Int64
	tokens int // in the last write
}

func (s *usesStore) UseTokens(ctx context.Context, usedAt map[int64]time.Time) error {
	s.writes.Add(1)
	s.tokens = len(usedAt)
	if s.broken.Load() {
		return errors.New("broken")
	}
	return s.Store.UseTokens(ctx, usedAt)
}

// usage is the use of one token in a running process.
type usage struct {
	use    func()           // authenticates with the token
	usedAt func() time.Time // as stored
	stop   func()           // stops the process
}

func TestTokenUses(t *testing.T) {
	bubble := func(name string, test func(t *testing.T, s *usesStore, u usage)) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "links.db")
			synctest.Test(t, func(t *testing.T) {
				store := &usesStore{Store: sqlitetest.At(t, path)}
				secret, token := addToken(t, store.Store, "me@example.org")
				authenticator := newAuthenticator(t, store)
				use := func() {
					if _, err := authenticator.Authenticate(t.Context(), bearer(secret)); err != nil {
						t.Fatal(err)
					}
				}
				usedAt := func() time.Time {
					tokens, err := store.Tokens(t.Context(), token.AccountID)
					if err != nil || len(tokens) != 1 {
						t.Fatalf("%+v, %v", tokens, err)
					}
					return tokens[0].UsedAt
				}
				ctx, cancel := context.WithCancel(context.Background())
				var running sync.WaitGroup
				running.Go(func() { authenticator.Run(ctx, slog.New(slog.DiscardHandler)) })
				stop := func() { cancel(); running.Wait() }
				defer stop()
				test(t, store, usage{use, usedAt, stop})
			})
		})
	}
	bubble("are written every few seconds, in one write", func(t *testing.T, s *usesStore, u usage) {
		var last time.Time
		for range 100 {
			u.use()
			last = time.Now()
			time.Sleep(10 * time.Millisecond)
		}
		if at := u.usedAt(); !at.IsZero() || s.writes.Load() != 0 {
			t.Fatalf("written at once: %v, %d writes", at, s.writes.Load())
		}
		time.Sleep(10 * time.Second)
		if at := u.usedAt(); !at.Equal(last) || s.writes.Load() != 1 {
			t.Errorf("%v after %d writes, want %v after 1", at, s.writes.Load(), last)
		}
	})
	bubble("are written when the process stops", func(t *testing.T, _ *usesStore, u usage) {
		u.use()
		at := time.Now()
		u.stop()
		if got := u.usedAt(); !got.Equal(at) {
			t.Errorf("%v, want %v", got, at)
		}
	})
	bubble("are written later if the store fails", func(t *testing.T, s *usesStore, u usage) {
		u.use()
		at := time.Now()
		s.broken.Store(true)
		time.Sleep(time.Minute)
		if s.writes.Load() < 2 || !u.usedAt().IsZero() {
			t.Fatalf("%d writes", s.writes.Load())
		}
		s.broken.Store(false)
		time.Sleep(6 * time.Second)
		if got := u.usedAt(); !got.Equal(at) {
			t.Errorf("%v, want %v", got, at)
		}
	})
}

func TestTokenUsesAreBounded(t *testing.T) {
	store := &usesStore{Store: sqlitetest.New(t)}
	authenticator := newAuthenticator(t, store)
	for id := range int64(auth.MaxUses + 100) {
		authenticator.NoteUse(id, time.Now())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	authenticator.Run(ctx, slog.New(slog.DiscardHandler))
	if store.tokens != auth.MaxUses {
		t.Errorf("%d tokens in a write, want %d", store.tokens, auth.MaxUses)
	}
}
