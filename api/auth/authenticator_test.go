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
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

func newAuthenticator(t testing.TB, tokens schema.TokenStore) *auth.Authenticator {
	t.Helper()
	a, err := auth.NewAuthenticator(tokens)
	testkit.Must(t, err)
	t.Cleanup(a.Close)
	return a
}

// tokenStore counts the calls to a store and can delay them.
type tokenStore struct {
	*linkstore.Store
	delay time.Duration
	calls atomic.Int64
}

func (s *tokenStore) TokenByDigest(ctx context.Context, digest [32]byte) (schema.Token, schema.Account, error) {
	s.calls.Add(1)
	select {
	case <-time.After(s.delay):
	case <-ctx.Done():
		return schema.Token{}, schema.Account{}, ctx.Err()
	}
	return s.Store.TokenByDigest(ctx, digest)
}

func bearer(secret string) []byte { return []byte("Bearer " + secret) }

func TestAuthenticateHeader(t *testing.T) {
	store := &tokenStore{Store: sqlitetest.New(t)}
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
	store.calls.Store(0)
	for name, header := range map[string]string{
		"empty":                    "",
		"a space":                  " ",
		"only the scheme":          "Bearer",
		"no token":                 "Bearer ",
		"no scheme":                secret,
		"no space":                 "Bearer" + secret,
		"a tab":                    "Bearer\t" + secret,
		"another scheme":           "Basic " + secret,
		"a longer scheme":          "Bearers " + secret,
		"a leading space":          " Bearer " + secret,
		"a trailing space":         "Bearer " + secret + " ",
		"two tokens":               "Bearer " + secret + "," + secret,
		"quotes":                   `Bearer "` + secret + `"`,
		"no prefix":                "Bearer " + strings.TrimPrefix(secret, auth.TokenPrefix),
		"the prefix in upper case": "Bearer LS_" + strings.TrimPrefix(secret, auth.TokenPrefix),
		"too short":                "Bearer " + secret[:30],
		"too long":                 "Bearer ls_" + strings.Repeat("A", 2000),
		"no text":                  "Bearer ls_" + strings.Repeat("\xff", 43),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := authenticator.Authenticate(t.Context(), []byte(header))
			testkit.WantCode(t, err, schema.CodeUnauthorized)
		})
	}
	t.Run("malformed tokens cause no call to the store", func(t *testing.T) {
		if n := store.calls.Load(); n != 0 {
			t.Errorf("%d calls to the store", n)
		}
	})
}

func TestAuthenticate(t *testing.T) {
	t.Run("refuses an unknown token", func(t *testing.T) {
		store := sqlitetest.New(t)
		secret, _ := addToken(t, store, "me@example.org")
		authenticator := newAuthenticator(t, store)
		for _, other := range []string{secret + "A", secret[:len(secret)-1], strings.ToLower(secret)} {
			_, err := authenticator.Authenticate(t.Context(), bearer(other))
			testkit.WantCode(t, err, schema.CodeUnauthorized)
		}
	})
	t.Run("reports that the account is suspended", func(t *testing.T) {
		store := sqlitetest.New(t)
		secret, token := addToken(t, store, "me@example.org")
		testkit.Must(t, store.SetSuspended(t.Context(), token.AccountID, true))
		got, err := newAuthenticator(t, store).Authenticate(t.Context(), bearer(secret))
		if want := (auth.Grant{TokenID: token.ID, AccountID: token.AccountID, Suspended: true}); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	})
	t.Run("keeps no reference to the header", func(t *testing.T) {
		store := sqlitetest.New(t)
		secret, _ := addToken(t, store, "me@example.org")
		authenticator := newAuthenticator(t, store)
		header := bearer(secret)
		for range 2 {
			if _, err := authenticator.Authenticate(t.Context(), header); err != nil {
				t.Fatal(err)
			}
			clear(header)
			_, err := authenticator.Authenticate(t.Context(), header)
			testkit.WantCode(t, err, schema.CodeUnauthorized)
			copy(header, bearer(secret))
		}
	})
	t.Run("is unavailable, not unauthorized, while the store fails", func(t *testing.T) {
		store := sqlitetest.New(t)
		secret, _ := addToken(t, store, "me@example.org")
		authenticator := newAuthenticator(t, store)
		store.Close()
		for range 2 {
			_, err := authenticator.Authenticate(t.Context(), bearer(secret))
			testkit.WantCode(t, err, schema.CodeUnavailable)
			if errors.Unwrap(err) == nil {
				t.Errorf("error %v wraps no cause", err)
			}
		}
	})
}

// process is an api process. Another process works on the same store.
type process struct {
	auth  *auth.Authenticator
	store *tokenStore
	other *linkstore.Store
}

// bubble runs a test in a synctest bubble, where time is exact. The store answers after delay.
func bubble(t *testing.T, name string, delay time.Duration, test func(t *testing.T, p process)) {
	t.Run(name, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "links.db")
		synctest.Test(t, func(t *testing.T) {
			store := &tokenStore{Store: sqlitetest.At(t, path), delay: delay}
			test(t, process{newAuthenticator(t, store), store, sqlitetest.At(t, path)})
		})
	})
}

func TestAuthenticateSeesChangesByOtherProcesses(t *testing.T) {
	bubble(t, "a revoked token is refused after a second", 0, func(t *testing.T, p process) {
		secret, token := addToken(t, p.other, "me@example.org")
		if _, err := p.auth.Authenticate(t.Context(), bearer(secret)); err != nil {
			t.Fatal(err)
		}
		testkit.Must(t, p.other.RevokeToken(t.Context(), token.ID, time.Now(), false))
		time.Sleep(time.Second + time.Nanosecond)
		_, err := p.auth.Authenticate(t.Context(), bearer(secret))
		testkit.WantCode(t, err, schema.CodeUnauthorized)
	})
	bubble(t, "a token that was unknown is accepted after a second", 0, func(t *testing.T, p process) {
		_, token := addToken(t, p.other, "me@example.org")
		secret, second := auth.NewToken(token.AccountID, "second")
		_, err := p.auth.Authenticate(t.Context(), bearer(secret))
		testkit.WantCode(t, err, schema.CodeUnauthorized)
		testkit.Must(t, p.other.CreateToken(t.Context(), &second))
		time.Sleep(time.Second + time.Nanosecond)
		if _, err := p.auth.Authenticate(t.Context(), bearer(secret)); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "the state of the account is a second old at most", 0, func(t *testing.T, p process) {
		secret, token := addToken(t, p.other, "me@example.org")
		for _, suspended := range []bool{false, true, false} {
			testkit.Must(t, p.other.SetSuspended(t.Context(), token.AccountID, suspended))
			time.Sleep(time.Second + time.Nanosecond)
			if got, err := p.auth.Authenticate(t.Context(), bearer(secret)); err != nil || got.Suspended != suspended {
				t.Errorf("%+v, %v, want suspended %t", got, err, suspended)
			}
		}
	})
}

func TestAuthenticateCachesAnswers(t *testing.T) {
	unknown, _ := auth.NewToken(1, "never stored")

	bubble(t, "of a valid token for a second", 0, func(t *testing.T, p process) {
		secret, _ := addToken(t, p.other, "me@example.org")
		requestFor(t, p.auth, secret, 3*time.Second, "")
		if n := p.store.calls.Load(); n != 3 {
			t.Errorf("%d calls in 3 seconds", n)
		}
	})
	bubble(t, "of an unknown token for a second", 0, func(t *testing.T, p process) {
		requestFor(t, p.auth, unknown, 3*time.Second, schema.CodeUnauthorized)
		if n := p.store.calls.Load(); n != 3 {
			t.Errorf("%d calls in 3 seconds", n)
		}
	})
	bubble(t, "for a second from the call to the store", 600*time.Millisecond, func(t *testing.T, p process) {
		secret, _ := addToken(t, p.other, "me@example.org")
		for i, after := range []time.Duration{0, 400 * time.Millisecond, time.Nanosecond} {
			time.Sleep(after)
			if _, err := p.auth.Authenticate(t.Context(), bearer(secret)); err != nil {
				t.Fatal(err)
			}
			if n, want := p.store.calls.Load(), []int64{1, 1, 2}[i]; n != want {
				t.Errorf("%d calls, want %d", n, want)
			}
		}
	})
	bubble(t, "with one call for concurrent requests", time.Millisecond, func(t *testing.T, p process) {
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
		if n := p.store.calls.Load(); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
	bubble(t, "also when the first of concurrent requests is cancelled", time.Second/2, func(t *testing.T, p process) {
		secret, _ := addToken(t, p.other, "me@example.org")
		first, cancel := context.WithCancel(t.Context())
		go p.auth.Authenticate(first, bearer(secret))
		synctest.Wait()
		cancel()
		if _, err := p.auth.Authenticate(t.Context(), bearer(secret)); err != nil || p.store.calls.Load() != 1 {
			t.Errorf("%v after %d calls", err, p.store.calls.Load())
		}
	})
	bubble(t, "and gives up a call after 5 seconds", time.Hour, func(t *testing.T, p process) {
		began := time.Now()
		_, err := p.auth.Authenticate(t.Context(), bearer(unknown))
		testkit.WantCode(t, err, schema.CodeUnavailable)
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("waited for %v", waited)
		}
	})
}

// Outside a bubble: in a bubble the cache applies its writes before the clock advances.
func TestAuthenticateCachesAnswersAtOnce(t *testing.T) {
	store := &tokenStore{Store: sqlitetest.New(t)}
	authenticator := newAuthenticator(t, store)
	const tokens = 500
	for range tokens {
		unknown, _ := auth.NewToken(1, "never stored")
		for range 2 {
			_, err := authenticator.Authenticate(t.Context(), bearer(unknown))
			testkit.WantCode(t, err, schema.CodeUnauthorized)
		}
	}
	testkit.Equal(t, "calls to the store", store.calls.Load(), tokens)
}

// requestFor sends a request every 10 ms for d and requires the code of each answer.
func requestFor(t *testing.T, a *auth.Authenticator, secret string, d time.Duration, code schema.Code) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		_, err := a.Authenticate(t.Context(), bearer(secret))
		testkit.WantCode(t, err, code)
	}
}

func TestAuthenticateUnderFloodOfUnknownTokens(t *testing.T) {
	store := sqlitetest.New(t)
	secret, token := addToken(t, store, "me@example.org")
	authenticator := newAuthenticator(t, store)
	var wg sync.WaitGroup
	for flood := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				_, err := authenticator.Authenticate(t.Context(), bearer(fmt.Sprintf("ls_%032d-%d", i, flood)))
				if got := schema.ErrorCode(err); got != schema.CodeUnauthorized {
					t.Errorf("unknown token: %v", err)
				}
				if got, err := authenticator.Authenticate(t.Context(), bearer(secret)); err != nil || got.TokenID != token.ID {
					t.Errorf("valid token: %+v, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

// Invariants: an accepted header is the scheme, spaces and the returned token; the case of the scheme does not matter.
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
