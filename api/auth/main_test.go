package auth_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// addToken stores an account with a token, and returns the token with its secret.
func addToken(tb testing.TB, store *linkstore.Store, email string) (secret string, token schema.Token) {
	tb.Helper()
	account := schema.Account{Email: email, CreatedAt: time.Now()}
	testkit.Must(tb, store.CreateAccount(tb.Context(), &account))
	secret, token = auth.NewToken(account.ID, "test")
	testkit.Must(tb, store.CreateToken(tb.Context(), &token))
	return secret, token
}
