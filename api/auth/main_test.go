package auth_test

import (
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlite/sqlitetest"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openStore opens the store at path. Two stores at one path stand for two processes.
func openStore(tb testing.TB, path string) *sqlite.Store {
	tb.Helper()
	store, err := sqlitetest.Open(tb.Context(), path)
	testkit.Must(tb, err)
	tb.Cleanup(func() { store.Close() }) // again, if the test has closed it
	return store
}

func newStore(tb testing.TB) *sqlite.Store {
	return openStore(tb, filepath.Join(tb.TempDir(), "links.db"))
}

// addToken stores an account with a token, and returns the token with its secret.
func addToken(tb testing.TB, store *sqlite.Store, email string) (secret string, token schema.Token) {
	tb.Helper()
	account := schema.Account{Email: email, CreatedAt: time.Now()}
	testkit.Must(tb, store.CreateAccount(tb.Context(), &account))
	secret, token = auth.NewToken(account.ID, "test")
	testkit.Must(tb, store.CreateToken(tb.Context(), &token))
	return secret, token
}
