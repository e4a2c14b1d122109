package auth_test

import (
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens the store at path, which another store may have open, too: that is how processes share one.
func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func newStore(t testing.TB) *sqlite.Store { return open(t, filepath.Join(t.TempDir(), "links.db")) }

// addToken makes an account with a token, and returns the token's secret as well.
func addToken(t testing.TB, store *sqlite.Store, email string) (secret string, token schema.Token) {
	t.Helper()
	account := schema.Account{Email: email, CreatedAt: time.Now()}
	if err := store.CreateAccount(t.Context(), &account); err != nil {
		t.Fatal(err)
	}
	secret, token = auth.NewToken(account.ID, "test")
	if err := store.CreateToken(t.Context(), &token); err != nil {
		t.Fatal(err)
	}
	return secret, token
}

func wantCode(t testing.TB, err error, code schema.Code) {
	t.Helper()
	if got := schema.ErrorCode(err); got != code {
		t.Fatalf("got code %q (error %v), want %q", got, err, code)
	}
}
