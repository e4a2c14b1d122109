package auth_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/sqlite"
)

func newAuthenticator(t testing.TB, tokens schema.TokenStore) *auth.Authenticator {
	t.Helper()
	a, err := auth.NewAuthenticator(tokens)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// watched counts the questions to a store and can delay them.
type watched struct {
	*sqlite.Store
	delay time.Duration
	asked atomic.Int64
}

func (w *watched) TokenByDigest(ctx context.Context, digest [32]byte) (schema.Token, schema.Account, error) {
	w.asked.Add(1)
	select {
	case <-time.After(w.delay):
	case <-ctx.Done():
		return schema.Token{}, schema.Account{}, ctx.Err()
	}
	return w.Store.TokenByDigest(ctx, digest)
}

func bearer(secret string) []byte { return []byte("Bearer " + secret) }

func TestAuthenticateHeader(t *testing.T) {
	store := &watched{Store: newStore(t)}
	secret, token := addToken(t, store.Store, "me@example.org")
	authenticator := newAuthenticator(t, store)
	granted := auth.Grant{TokenID: token.ID, AccountID: token.AccountID}

	for _, header := range []string{
		"Bearer " + secret, "bearer " + secret, "BEARER " + secret, "bEaReR " + secret, "Bearer   " + secret,
	} {
		t.Run(header[:9], func(t *testing.T) {
			if got, err := authenticator.Authenticate(t.Context(), []byte(header)); err != nil || got != granted {
				t.Errorf("%+v, %v, want %+v", got, err, granted)
			}
		})
	}
	store.asked.Store(0)
	for name, header := range map[string]string{
		"missing":              "",
		"a space":              " ",
		"only the scheme":      "Bearer",
		"no token":             "Bearer ",
		"no scheme":            secret,
		"no space":             "Bearer" + secret,
		"a tab":                "Bearer\t" + secret,
		"another scheme":       "Basic " + secret,
		"a longer scheme":      "Bearers " + secret,
		"a space in front":     " Bearer " + secret,
		"a space behind":       "Bearer " + secret + " ",
		"two tokens":           "Bearer " + secret + "," + secret,
		"quotes":               `Bearer "` + secret + `"`,
		"without the mark":     "Bearer " + strings.TrimPrefix(secret, auth.TokenMark),
		"the mark in capitals": "Bearer LS_" + strings.TrimPrefix(secret, auth.TokenMark),
		"too short":            "Bearer " + secret[:30],
		"too long":             "Bearer ls_" + strings.Repeat("A", 2000),
		"no text":              "Bearer ls_" + strings.Repeat("\xff", 43),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := authenticator.Authenticate(t.Context(), []byte(header))
			wantCode(t, err, schema.CodeUnauthorized)
		})
	}
	t.Run("what cannot be a token is not looked up", func(t *testing.T) {
		if n := store.asked.Load(); n != 0 {
			t.Errorf("%d questions to the store", n)
		}
	})
}

func TestAuthenticate(t *testing.T) {
	t.Run("refuses a token that is unknown", func(t *testing.T) {
		store := newStore(t)
		secret, _ := addToken(t, store, "me@example.org")
		authenticator := newAuthenticator(t, store)
		for _, other := range []string{secret + "A", secret[:len(secret)-1], strings.ToLower(secret)} {
			_, err := authenticator.Authenticate(t.Context(), bearer(other))
			wantCode(t, err, schema.CodeUnauthorized)
		}
	})
	t.Run("tells that the account is suspended", func(t *testing.T) {
		store := newStore(t)
		secret, token := addToken(t, store, "me@example.org")
		if err := store.SetSuspended(t.Context(), token.AccountID, true); err != nil {
			t.Fatal(err)
		}
		got, err := newAuthenticator(t, store).Authenticate(t.Context(), bearer(secret))
		if want := (auth.Grant{TokenID: token.ID, AccountID: token.AccountID, Suspended: true}); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	})
	t.Run("does not keep the header", func(t *testing.T) {
		store := newStore(t)
		secret, _ := addToken(t, store, "me@example.org")
		authenticator := newAuthenticator(t, store)
		header := bearer(secret)
		for range 2 {
			if _, err := authenticator.Authenticate(t.Context(), header); err != nil {
				t.Fatal(err)
			}
			clear(header)
			_, err := authenticator.Authenticate(t.Context(), header)
			wantCode(t, err, schema.CodeUnauthorized)
			copy(header, bearer(secret))
		}
	})
	t.Run("does not take a store that fails for a refusal", func(t *testing.T) {
		store := newStore(t)
		secret, _ := addToken(t, store, "me@example.org")
		authenticator := newAuthenticator(t, store)
		store.Close()
		for range 2 {
			_, err := authenticator.Authenticate(t.Context(), bearer(secret))
			wantCode(t, err, schema.CodeUnavailable)
			if errors.Unwrap(err) == nil {
				t.Errorf("%v has no cause", err)
			}
		}
	})
}

// process is an api process, beside another one that works on the same store.
type process struct {
	auth  *auth.Authenticator
	store *watched
	other *sqlite.Store
}

// bubble runs a test where time moves only while all of it waits, so that a second passes at once and exactly. The
// store takes delay to answer.
func bubble(t *testing.T, name string, delay time.Duration, test func(t *testing.T, p process)) {
	t.Run(name, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "links.db")
		synctest.Test(t, func(t *testing.T) {
			store := &watched{Store: open(t, path), delay: delay}
			test(t, process{newAuthenticator(t, store), store, open(t, path)})
		})
	})
}

func TestAuthenticateSeesChange(t *testing.T) {
	bubble(t, "a token that another process revokes is refused after a second", 0, func(t *testing.T, p process) {
		secret, token := addToken(t, p.other, "me@example.org")
		if _, err := p.auth.Authenticate(t.Context(), bearer(secret)); err != nil {
			t.Fatal(err)
		}
		if err := p.other.RevokeToken(t.Context(), token.ID, time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second + time.Nanosecond)
		_, err := p.auth.Authenticate(t.Context(), bearer(secret))
		wantCode(t, err, schema.CodeUnauthorized)
	})
	bubble(t, "a token that another process makes is taken after a second", 0, func(t *testing.T, p process) {
		_, token := addToken(t, p.other, "me@example.org")
		secret, second := auth.NewToken(token.AccountID, "second")
		_, err := p.auth.Authenticate(t.Context(), bearer(secret))
		wantCode(t, err, schema.CodeUnauthorized)
		if err := p.other.CreateToken(t.Context(), &second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second + time.Nanosecond)
		if _, err := p.auth.Authenticate(t.Context(), bearer(secret)); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "an account that another process suspends is so after a second", 0, func(t *testing.T, p process) {
		secret, token := addToken(t, p.other, "me@example.org")
		for _, suspended := range []bool{false, true, false} {
			if err := p.other.SetSuspended(t.Context(), token.AccountID, suspended); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second + time.Nanosecond)
			if got, err := p.auth.Authenticate(t.Context(), bearer(secret)); err != nil || got.Suspended != suspended {
				t.Errorf("%+v, %v, want suspended %t", got, err, suspended)
			}
		}
	})
}

func TestAuthenticateAsksSeldom(t *testing.T) {
	unknown, _ := auth.NewToken(1, "never stored")

	bubble(t, "once in a second for a valid token", 0, func(t *testing.T, p process) {
		secret, _ := addToken(t, p.other, "me@example.org")
		requestFor(t, p.auth, secret, 3*time.Second, "")
		if n := p.store.asked.Load(); n != 3 {
			t.Errorf("%d questions in 3 seconds", n)
		}
	})
	bubble(t, "once in a second for an unknown token", 0, func(t *testing.T, p process) {
		requestFor(t, p.auth, unknown, 3*time.Second, schema.CodeUnauthorized)
		if n := p.store.asked.Load(); n != 3 {
			t.Errorf("%d questions in 3 seconds", n)
		}
	})
	bubble(t, "a second counts from the question", 600*time.Millisecond, func(t *testing.T, p process) {
		secret, _ := addToken(t, p.other, "me@example.org")
		for i, after := range []time.Duration{0, 400 * time.Millisecond, time.Nanosecond} {
			time.Sleep(after)
			if _, err := p.auth.Authenticate(t.Context(), bearer(secret)); err != nil {
				t.Fatal(err)
			}
			if n, want := p.store.asked.Load(), []int64{1, 1, 2}[i]; n != want {
				t.Errorf("%d questions, want %d", n, want)
			}
		}
	})
	bubble(t, "once for requests that come together", time.Millisecond, func(t *testing.T, p process) {
		secret, _ := addToken(t, p.other, "me@example.org")
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := p.auth.Authenticate(t.Context(), bearer(secret)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := p.store.asked.Load(); n != 1 {
			t.Errorf("%d questions", n)
		}
	})
	bubble(t, "and a cancelled request does not take the others with it", time.Second/2, func(t *testing.T, p process) {
		secret, _ := addToken(t, p.other, "me@example.org")
		first, cancel := context.WithCancel(t.Context())
		go p.auth.Authenticate(first, bearer(secret))
		synctest.Wait()
		cancel()
		if _, err := p.auth.Authenticate(t.Context(), bearer(secret)); err != nil || p.store.asked.Load() != 1 {
			t.Errorf("%v after %d questions", err, p.store.asked.Load())
		}
	})
	bubble(t, "and waits for an answer no longer than 5 seconds", time.Hour, func(t *testing.T, p process) {
		began := time.Now()
		_, err := p.auth.Authenticate(t.Context(), bearer(unknown))
		wantCode(t, err, schema.CodeUnavailable)
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("waited for %v", waited)
		}
	})
}

// requestFor sends a request each 10 ms.
func requestFor(t *testing.T, a *auth.Authenticator, secret string, d time.Duration, code schema.Code) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		_, err := a.Authenticate(t.Context(), bearer(secret))
		wantCode(t, err, code)
	}
}

func TestAuthenticateUnderFlood(t *testing.T) {
	store := newStore(t)
	secret, token := addToken(t, store, "me@example.org")
	authenticator := newAuthenticator(t, store)
	var wg sync.WaitGroup
	for flood := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				_, err := authenticator.Authenticate(t.Context(), bearer(fmt.Sprintf("ls_%032d-%d", i, flood)))
				if got := schema.ErrorCode(err); got != schema.CodeUnauthorized {
					t.Errorf("an unknown token: %v", err)
				}
				if got, err := authenticator.Authenticate(t.Context(), bearer(secret)); err != nil || got.TokenID != token.ID {
					t.Errorf("the valid token: %+v, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

// Invariants: what is accepted is the scheme, spaces, and a token that is given back whole; and so is it when the
// scheme is written in any other case.
func FuzzBearer(f *testing.F) {
	secret, _ := auth.NewToken(1, "seed")
	f.Add(bearer(secret))
	f.Add([]byte("bearer   " + secret))
	f.Add([]byte("Bearer ls_"))
	f.Add([]byte("Bearer"))
	f.Fuzz(func(t *testing.T, header []byte) {
		token, ok := auth.ParseBearer(header)
		if !ok {
			return
		}
		spaces := bytes.TrimSuffix(header[len("bearer"):], token)
		if len(spaces) == 0 || len(bytes.Trim(spaces, " ")) != 0 || !strings.EqualFold(string(header[:6]), "bearer") {
			t.Fatalf("%q gave %q", header, token)
		}
		if again, ok := auth.ParseBearer(append([]byte("bEARER"), header[6:]...)); !ok || !bytes.Equal(again, token) {
			t.Fatalf("%q gave %q, and then %q, %t", header, token, again, ok)
		}
	})
}
