package ratelimit_test

import (
	"crypto/rand"
	"crypto/sha256"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// addToken stores an account with a token, and returns the token's ID.
func addToken(tb testing.TB, store *linkstore.Store) int64 {
	tb.Helper()
	account := schema.Account{Email: rand.Text() + "@example.org", CreatedAt: time.Now()}
	testkit.Must(tb, store.CreateAccount(tb.Context(), &account))
	token := schema.Token{AccountID: account.ID, Digest: sha256.Sum256([]byte(account.Email)), CreatedAt: time.Now()}
	testkit.Must(tb, store.CreateToken(tb.Context(), &token))
	return token.ID
}
