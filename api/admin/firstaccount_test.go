package admin_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/api/admin"
	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/service"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

func newStore(t *testing.T) *linkstore.Store {
	t.Helper()
	return sqlitetest.New(t)
}

const chosenToken = "ls_0123456789abcdefghijklmnopqrstuvwx-_"

func TestFirstAccount(t *testing.T) {
	t.Run("has a random password and token by default", func(t *testing.T) {
		store := newStore(t)
		first, created, err := admin.FirstAccount{Email: admin.DefaultEmail}.Create(t.Context(), store)
		testkit.Must(t, err)
		if !created || first.Email != admin.DefaultEmail {
			t.Errorf("%+v, created %t", first, created)
		}
		wantWorking(t, store, first)
		other, _, err := admin.FirstAccount{Email: admin.DefaultEmail}.Create(t.Context(), newStore(t))
		testkit.Must(t, err)
		if other.Password == first.Password || other.Token == first.Token {
			t.Errorf("%+v twice", first)
		}
	})
	t.Run("has the chosen values", func(t *testing.T) {
		store := newStore(t)
		chosen := admin.FirstAccount{Email: "Me@Example.ORG", Password: "pass word", Token: chosenToken}
		first, created, err := chosen.Create(t.Context(), store)
		testkit.Must(t, err)
		chosen.Email = "me@example.org"
		if !created || first != chosen {
			t.Errorf("%+v, created %t, want %+v", first, created, chosen)
		}
		wantWorking(t, store, first)
	})
	t.Run("is not created if there is an account", func(t *testing.T) {
		store := newStore(t)
		testkit.Must(t, store.CreateAccount(t.Context(), &schema.Account{Email: "other@example.org", CreatedAt: time.Now()}))
		first, created, err := admin.FirstAccount{Email: "me@example.org", Token: chosenToken}.Create(t.Context(), store)
		testkit.Must(t, err)
		testkit.Equal(t, "created", created, false)
		testkit.Equal(t, "first account", first, admin.FirstAccount{})
		_, err = store.AccountByEmail(t.Context(), "me@example.org")
		testkit.WantCode(t, err, schema.CodeNotFound)
		_, _, err = store.TokenByDigest(t.Context(), auth.Digest(chosenToken))
		testkit.WantCode(t, err, schema.CodeNotFound)
	})
	t.Run("is not created without an email", func(t *testing.T) {
		store := newStore(t)
		_, created, err := admin.FirstAccount{Password: "pass word"}.Create(t.Context(), store)
		testkit.Must(t, err)
		testkit.Equal(t, "created", created, false)
		if _, created, err := (admin.FirstAccount{Email: "me@example.org"}).Create(t.Context(), store); err != nil ||
			!created {
			t.Errorf("there is an account: created %t, error %v", created, err)
		}
	})
	t.Run("is created once by concurrent processes", func(t *testing.T) {
		store := newStore(t)
		var created atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				_, ok, err := admin.FirstAccount{Email: "me@example.org"}.Create(t.Context(), store)
				if err != nil {
					t.Error(err)
				}
				if ok {
					created.Add(1)
				}
			})
		}
		wg.Wait()
		testkit.Equal(t, "processes that created it", created.Load(), 1)
	})
	t.Run("reports every invalid value, without secrets", func(t *testing.T) {
		invalid := admin.FirstAccount{Email: "nobody", Password: "short", Token: "secret"}
		_, created, err := invalid.Create(t.Context(), newStore(t))
		testkit.WantError(t, err, schema.CodeInvalid, "email", "password", "token")
		if strings.Contains(err.Error(), "secret") || created {
			t.Errorf("created %t, error %v", created, err)
		}
	})
	t.Run("reports a store that fails", func(t *testing.T) {
		store := newStore(t)
		store.Close()
		if _, created, err := (admin.FirstAccount{Email: "me@example.org"}).Create(t.Context(), store); err == nil ||
			created {
			t.Errorf("created %t, error %v", created, err)
		}
	})
}

// wantWorking requires that the account's password and token are valid.
func wantWorking(t *testing.T, store schema.TokenStore, first admin.FirstAccount) {
	t.Helper()
	token, account, err := store.TokenByDigest(t.Context(), auth.Digest(first.Token))
	testkit.Must(t, err)
	if account.Email != first.Email || account.Suspended || account.CreatedAt.IsZero() || token.CreatedAt.IsZero() {
		t.Errorf("account %+v, token %+v", account, token)
	}
	if ok, err := auth.VerifyPassword(account.PasswordHash, first.Password); !ok || err != nil {
		t.Errorf("password %q: %t, %v", first.Password, ok, err)
	}
}

var apiURL = schema.MustParseBaseURL("http://api.example")

// printed returns the output of the first start with these flags.
func printed(t *testing.T, store *linkstore.Store, args ...string) string {
	t.Helper()
	first := admin.FirstAccount{}
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	first.RegisterFlags(flags)
	testkit.Must(t, flags.Parse(append(args, "-bootstrap.email", "me@example.org")))
	text, err := first.CreateAndReport(t.Context(), store, apiURL)
	testkit.Must(t, err)
	return text
}

func TestFirstAccountIsPrinted(t *testing.T) {
	const curl = "curl -s http://api.example/api/v1/shorten -H 'Authorization: Bearer "
	token := regexp.MustCompile(`API token +(ls_\S+)\n`)
	t.Run("once, with the secrets that were generated", func(t *testing.T) {
		store := newStore(t)
		out := printed(t, store)
		made := token.FindStringSubmatch(out)
		if made == nil || !strings.Contains(out, "me@example.org\n") || !strings.Contains(out, curl+made[1]+"'") {
			t.Errorf("printed:\n%s", out)
		}
		testkit.Equal(t, "output of the second start", printed(t, store), "")
	})
	t.Run("without the secrets that the operator chose", func(t *testing.T) {
		out := printed(t, newStore(t), "-bootstrap.password", "pass word", "-bootstrap.token", chosenToken)
		if strings.Contains(out, "pass word") || strings.Contains(out, chosenToken) ||
			strings.Count(out, "as configured\n") != 2 ||
			!strings.Contains(out, curl+"YOUR_TOKEN'") {
			t.Errorf("printed:\n%s", out)
		}
	})
	t.Run("with a generated token and a chosen password", func(t *testing.T) {
		out := printed(t, newStore(t), "-bootstrap.password", "pass word")
		if strings.Contains(out, "pass word") || strings.Count(out, "as configured\n") != 1 || !token.MatchString(out) {
			t.Errorf("printed:\n%s", out)
		}
	})
}

// unavailableOnce is a store that is unavailable for the first call.
type unavailableOnce struct {
	*linkstore.Store
	calls int
	err   error
}

func (s *unavailableOnce) CreateFirstAccount(ctx context.Context, account *schema.Account, token *schema.Token) error {
	if s.calls++; s.calls == 1 {
		return s.err
	}
	return s.Store.CreateFirstAccount(ctx, account, token)
}

func TestFirstAccountWaitsForItsStore(t *testing.T) {
	first := admin.FirstAccount{Email: "me@example.org"}
	report := service.WaitReport(func(string, error) {})
	t.Run("while it is unavailable", func(t *testing.T) {
		store := &unavailableOnce{Store: newStore(t), err: schema.Errorf(schema.CodeUnavailable, "restarting")}
		var out strings.Builder
		testkit.Must(t, first.AwaitAndPrint(t.Context(), report, store, schema.MustParseBaseURL("http://api.example"), &out))
		if store.calls != 2 || !strings.Contains(out.String(), "me@example.org") {
			t.Errorf("%d calls, printed %q", store.calls, &out)
		}
	})
	t.Run("but not after another error", func(t *testing.T) {
		store := &unavailableOnce{Store: newStore(t), err: errors.New("broken")}
		if err := first.AwaitAndPrint(t.Context(), report, store, schema.MustParseBaseURL("http://api.example"),
			io.Discard); !errors.Is(err, store.err) {
			t.Errorf("got %v, want %v", err, store.err)
		}
		testkit.Equal(t, "calls", store.calls, 1)
	})
}
