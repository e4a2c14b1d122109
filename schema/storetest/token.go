package storetest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var tokenBehaviours = []behaviour[schema.Database]{
	{"CreateToken keeps every field and sets an ID", createsTokens},
	{"CreateToken rejects a taken digest", refusesTakenDigest},
	{"TokenByDigest does not find an unknown digest", missesToken},
	{"TokenByDigest finds the token of a suspended account", findsTokenOfSuspended},
	{"RevokeToken makes one token invalid for good", revokesToken},
	{"RevokeToken does not find an unknown token", revokesUnknown},
	{"ValidTokens returns those that are valid and not of a suspended account", tellsValidTokens},
	{"Tokens returns the account's valid tokens, newest first", listsTokens},
	{"UseTokens records the latest use of each token", usesTokens},
	{"UseTokens records the latest use of concurrent calls", usesTokensConcurrently},
}

func addToken(t *testing.T, store schema.TokenStore, accountID int64, secret string) schema.Token {
	t.Helper()
	token := newToken(accountID, secret)
	testkit.Must(t, store.CreateToken(t.Context(), &token))
	return token
}

func newToken(accountID int64, secret string) schema.Token {
	return schema.Token{
		AccountID: accountID, Name: "token of " + secret, Prefix: "ls_" + secret,
		Digest: sha256.Sum256([]byte(secret)), CreatedAt: epoch,
	}
}

func createsTokens(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	zeros := newToken(a.ID, "zeros")
	zeros.Digest, zeros.Name, zeros.Prefix, zeros.UsedAt = [32]byte{}, "", "", epoch.Add(time.Hour)
	zeros.Scopes, zeros.ExpiresAt = "links.read webhooks", hour(1)
	testkit.Must(t, store.CreateToken(t.Context(), &zeros))
	owners := map[schema.Token]schema.Account{
		addToken(t, store, a.ID, "one"): a, addToken(t, store, a.ID, "two"): a, addToken(t, store, b.ID, "three"): b,
		zeros: a,
	}
	ids := map[int64]bool{0: true}
	for want, owner := range owners {
		gotToken, gotAccount, err := store.TokenByDigest(t.Context(), want.Digest)
		testkit.Must(t, err)
		testkit.Equal(t, "token", gotToken, want)
		testkit.Equal(t, "account", gotAccount, owner)
		ids[want.ID] = true
	}
	testkit.Equal(t, "distinct IDs", len(ids)-1, len(owners))
}

func refusesTakenDigest(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	want := addToken(t, store, a.ID, "secret")
	other := newToken(b.ID, "secret")
	testkit.WantCode(t, store.CreateToken(t.Context(), &other), schema.CodeConflict)
	got, _, err := store.TokenByDigest(t.Context(), want.Digest)
	testkit.Must(t, err)
	testkit.Equal(t, "token", got, want)
}

func missesToken(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	digest := addToken(t, store, owner.ID, "secret").Digest
	digest[31]++
	_, _, err := store.TokenByDigest(t.Context(), digest)
	testkit.WantCode(t, err, schema.CodeNotFound)
}

func findsTokenOfSuspended(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	token := addToken(t, store, owner.ID, "secret")
	testkit.Must(t, store.SetSuspended(t.Context(), owner.ID, true))
	_, account, err := store.TokenByDigest(t.Context(), token.Digest)
	testkit.Must(t, err)
	testkit.Equal(t, "suspended", account.Suspended, true)
}

func revokesToken(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	token, other := addToken(t, store, owner.ID, "secret"), addToken(t, store, owner.ID, "other")
	for i := range 3 {
		testkit.Must(t, store.RevokeToken(t.Context(), token.ID, epoch.Add(time.Duration(i)*time.Hour)))
		_, _, err := store.TokenByDigest(t.Context(), token.Digest)
		testkit.WantCode(t, err, schema.CodeNotFound)
	}
	got, _, err := store.TokenByDigest(t.Context(), other.Digest)
	testkit.Must(t, err)
	testkit.Equal(t, "token", got, other)
}

func revokesUnknown(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	token := addToken(t, store, owner.ID, "secret")
	testkit.WantCode(t, store.RevokeToken(t.Context(), token.ID+1000, epoch), schema.CodeNotFound)
}

func tellsValidTokens(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	first, second, revoked := addToken(t, store, a.ID, "1"), addToken(t, store, b.ID, "2"), addToken(t, store, a.ID, "3")
	testkit.Must(t, store.RevokeToken(t.Context(), revoked.ID, epoch))
	want := func(want ...int64) {
		t.Helper()
		got, err := store.ValidTokens(t.Context(), []int64{revoked.ID, second.ID, first.ID, revoked.ID + 1000})
		testkit.Must(t, err)
		slices.Sort(got)
		testkit.Equal(t, "valid tokens", got, want, nilOrEmpty)
	}
	want(first.ID, second.ID)
	testkit.Must(t, store.SetSuspended(t.Context(), a.ID, true))
	want(second.ID)
	testkit.Must(t, store.SetSuspended(t.Context(), a.ID, false))
	want(first.ID, second.ID)
}

// wantTokens requires that the account's tokens are want, in this order.
func wantTokens(t *testing.T, store schema.TokenStore, accountID int64, want ...schema.Token) {
	t.Helper()
	got, err := store.Tokens(t.Context(), accountID)
	testkit.Must(t, err)
	testkit.Equal(t, "tokens", got, want, nilOrEmpty)
}

func listsTokens(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	var tokens []schema.Token
	for i := range 4 {
		token := newToken(owner.ID, fmt.Sprint(i))
		token.CreatedAt = epoch.Add(time.Duration(i) * time.Minute)
		testkit.Must(t, store.CreateToken(t.Context(), &token))
		tokens = append(tokens, token)
	}
	others := addToken(t, store, other.ID, "other")
	wantTokens(t, store, owner.ID, tokens[3], tokens[2], tokens[1], tokens[0])
	testkit.Must(t, store.RevokeToken(t.Context(), tokens[2].ID, epoch))
	wantTokens(t, store, owner.ID, tokens[3], tokens[1], tokens[0])
	wantTokens(t, store, other.ID, others)
	wantTokens(t, store, other.ID+1000)
}

func usesTokens(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	first, second := addToken(t, store, owner.ID, "first"), addToken(t, store, owner.ID, "second")
	unused := addToken(t, store, owner.ID, "unused")
	testkit.Equal(t, "zero time while unused", first.UsedAt.IsZero(), true)
	at := func(minutes int) time.Time { return epoch.Add(time.Duration(minutes) * time.Minute) }
	for _, step := range []struct{ first, second, wantFirst, wantSecond int }{{1, 2, 1, 2}, {3, 1, 3, 2}, {2, 5, 3, 5}} {
		testkit.Must(t, store.UseTokens(t.Context(), map[int64]time.Time{
			first.ID: at(step.first), second.ID: at(step.second), unused.ID + 1000: at(9),
		}))
		first.UsedAt, second.UsedAt = at(step.wantFirst), at(step.wantSecond)
		wantTokens(t, store, owner.ID, unused, second, first)
	}
	for _, none := range []map[int64]time.Time{nil, {}, {unused.ID + 1000: at(9)}} {
		testkit.Must(t, store.UseTokens(t.Context(), none))
	}
	got, _, err := store.TokenByDigest(t.Context(), first.Digest)
	testkit.Must(t, err)
	testkit.Equal(t, "token", got, first)
	wantTokens(t, store, owner.ID, unused, second, first)
}

// usesTokensConcurrently records uses of the same tokens by many calls, as api processes do.
func usesTokensConcurrently(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	tokens := make([]schema.Token, 20)
	for i := range tokens {
		tokens[len(tokens)-1-i] = addToken(t, store, owner.ID, fmt.Sprint(i))
	}
	const calls = 24
	for _, err := range concurrently(calls, func(n int) error {
		used := map[int64]time.Time{}
		for i, token := range tokens {
			used[token.ID] = epoch.Add(time.Duration((n+i)%calls) * time.Minute)
		}
		return store.UseTokens(t.Context(), used)
	}) {
		testkit.Must(t, err)
	}
	for i := range tokens {
		tokens[i].UsedAt = epoch.Add((calls - 1) * time.Minute)
	}
	wantTokens(t, store, owner.ID, tokens...)
}
