package storetest

import (
	"fmt"
	"reflect"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var accountBehaviours = []behaviour[schema.Database]{
	{"CreateAccount keeps every field and sets an ID", createsAccounts},
	{"CreateAccount rejects a taken email", refusesTakenEmail},
	{"CreateAccount succeeds for exactly one of concurrent calls with one email", createsOneOfConcurrentAccounts},
	{"CreateFirstAccount stores the account and its token", createsFirstAccount},
	{"CreateFirstAccount stores nothing if an account exists", refusesSecondFirstAccount},
	{"CreateFirstAccount succeeds for exactly one of concurrent calls", createsOneFirstAccount},
	{"AccountByEmail does not find an unknown email", missesAccount},
	{"SetProfile replaces every field of the profile", setsProfile},
	{"SetSuspended suspends and reinstates repeatedly", suspends},
	{"SetSuspended does not find an unknown account", suspendsUnknown},
}

func addAccount(t *testing.T, store schema.AccountStore, email string) schema.Account {
	t.Helper()
	account := newAccount(email)
	testkit.Must(t, store.CreateAccount(t.Context(), &account))
	return account
}

func newAccount(email string) schema.Account {
	return schema.Account{Email: email, PasswordHash: "$argon2id$v=19$m=1,t=1,p=1$c2FsdA$" + email, CreatedAt: epoch}
}

// newProfile returns a profile whose fields all have values of their own.
func newProfile(name string) (p schema.Profile) {
	fields := reflect.ValueOf(&p).Elem()
	for i := range fields.NumField() {
		fields.Field(i).SetString(fmt.Sprintf("%s %s", fields.Type().Field(i).Name, name))
	}
	return p
}

func createsAccounts(t *testing.T, store schema.Database) {
	first := addAccount(t, store, "a@example.org")
	second := newAccount("jürgen@example.org")
	second.Suspended, second.Profile = true, newProfile("second")
	testkit.Must(t, store.CreateAccount(t.Context(), &second))
	if first.ID == 0 || first.ID == second.ID {
		t.Fatalf("got IDs %d and %d", first.ID, second.ID)
	}
	for _, want := range []schema.Account{first, second} {
		got, err := store.AccountByEmail(t.Context(), want.Email)
		testkit.Must(t, err)
		testkit.Equal(t, "account", got, want)
	}
}

func refusesTakenEmail(t *testing.T, store schema.Database) {
	first := addAccount(t, store, "a@example.org")
	other := newAccount("a@example.org")
	other.PasswordHash = "other"
	testkit.WantCode(t, store.CreateAccount(t.Context(), &other), schema.CodeConflict)
	got, err := store.AccountByEmail(t.Context(), "a@example.org")
	testkit.Must(t, err)
	testkit.Equal(t, "account", got, first)
}

func createsOneOfConcurrentAccounts(t *testing.T, store schema.Database) {
	accounts := make([]schema.Account, 8)
	winner := onlyOne(t, concurrently(len(accounts), func(i int) error {
		accounts[i] = newAccount("a@example.org")
		accounts[i].PasswordHash = fmt.Sprint(i)
		return store.CreateAccount(t.Context(), &accounts[i])
	}), schema.CodeConflict)
	got, err := store.AccountByEmail(t.Context(), "a@example.org")
	testkit.Must(t, err)
	testkit.Equal(t, "account", got, accounts[winner])
}

func createsFirstAccount(t *testing.T, store schema.Database) {
	account, token := newAccount("a@example.org"), newToken(0, "secret")
	testkit.Must(t, store.CreateFirstAccount(t.Context(), &account, &token))
	if account.ID == 0 || token.ID == 0 {
		t.Fatalf("got account ID %d and token ID %d", account.ID, token.ID)
	}
	token.AccountID = account.ID
	gotToken, gotAccount, err := store.TokenByDigest(t.Context(), token.Digest)
	testkit.Must(t, err)
	testkit.Equal(t, "token", gotToken, token)
	testkit.Equal(t, "account", gotAccount, account)
}

func refusesSecondFirstAccount(t *testing.T, store schema.Database) {
	addAccount(t, store, "a@example.org")
	account, token := newAccount("b@example.org"), newToken(0, "secret")
	testkit.WantCode(t, store.CreateFirstAccount(t.Context(), &account, &token), schema.CodeConflict)
	_, err := store.AccountByEmail(t.Context(), "b@example.org")
	testkit.WantCode(t, err, schema.CodeNotFound)
	_, _, err = store.TokenByDigest(t.Context(), token.Digest)
	testkit.WantCode(t, err, schema.CodeNotFound)
}

func createsOneFirstAccount(t *testing.T, store schema.Database) {
	const n = 8
	email := func(i int) string { return fmt.Sprintf("%d@example.org", i) }
	winner := onlyOne(t, concurrently(n, func(i int) error {
		account, token := newAccount(email(i)), newToken(0, email(i))
		return store.CreateFirstAccount(t.Context(), &account, &token)
	}), schema.CodeConflict)
	for i := range n {
		_, err := store.AccountByEmail(t.Context(), email(i))
		_, _, tokenErr := store.TokenByDigest(t.Context(), newToken(0, email(i)).Digest)
		if i == winner {
			testkit.Must(t, err)
			testkit.Must(t, tokenErr)
			continue
		}
		testkit.WantCode(t, err, schema.CodeNotFound)
		testkit.WantCode(t, tokenErr, schema.CodeNotFound)
	}
}

func missesAccount(t *testing.T, store schema.Database) {
	addAccount(t, store, "a@example.org")
	for _, email := range []string{"b@example.org", "a@example.or", ""} {
		_, err := store.AccountByEmail(t.Context(), email)
		testkit.WantCode(t, err, schema.CodeNotFound)
	}
}

func setsProfile(t *testing.T, store schema.Database) {
	account, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	session, token := addSession(t, store, account, "session"), addToken(t, store, account.ID, "token")
	account.Profile = newProfile("first")
	testkit.Must(t, store.SetProfile(t.Context(), account.ID, account.Profile))
	for _, want := range []schema.Account{account, other} {
		got, err := store.AccountByEmail(t.Context(), want.Email)
		testkit.Must(t, err)
		testkit.Equal(t, "account", got, want)
	}
	_, ofSession, err := store.SessionByDigest(t.Context(), session.Digest, session.CreatedAt)
	testkit.Must(t, err)
	testkit.Equal(t, "account of the session", ofSession, account)
	_, ofToken, err := store.TokenByDigest(t.Context(), token.Digest)
	testkit.Must(t, err)
	testkit.Equal(t, "account of the token", ofToken, account)
	testkit.WantCode(t, store.SetProfile(t.Context(), other.ID+1000, account.Profile), schema.CodeNotFound)
}

func suspends(t *testing.T, store schema.Database) {
	account, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	for _, suspended := range []bool{true, true, false, false, true} {
		testkit.Must(t, store.SetSuspended(t.Context(), account.ID, suspended))
		account.Suspended = suspended
		got, err := store.AccountByEmail(t.Context(), account.Email)
		testkit.Must(t, err)
		testkit.Equal(t, "account", got, account)
	}
	got, err := store.AccountByEmail(t.Context(), other.Email)
	testkit.Must(t, err)
	testkit.Equal(t, "account", got, other)
}

func suspendsUnknown(t *testing.T, store schema.Database) {
	account := addAccount(t, store, "a@example.org")
	testkit.WantCode(t, store.SetSuspended(t.Context(), account.ID+1000, true), schema.CodeNotFound)
}
