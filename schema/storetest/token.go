package storetest

import (
	"crypto/sha256"
	"testing"
	"time"

	"linkstream/schema"
)

var tokenBehaviours = []behaviour[LinkStores]{
	{"CreateToken keeps every field and sets an ID", createsTokens},
	{"CreateToken refuses a digest that is taken", refusesTakenDigest},
	{"TokenByDigest does not find an unknown digest", missesToken},
	{"TokenByDigest finds the token of a suspended account", findsTokenOfSuspended},
	{"RevokeToken makes one token invalid for good", revokesToken},
	{"RevokeToken does not find an unknown token", revokesUnknown},
}

func addToken(t *testing.T, store schema.TokenStore, accountID int64, secret string) schema.Token {
	t.Helper()
	token := newToken(accountID, secret)
	must(t, store.CreateToken(t.Context(), &token))
	return token
}

func newToken(accountID int64, secret string) schema.Token {
	return schema.Token{
		AccountID: accountID, Name: "token of " + secret, Prefix: "ls_" + secret,
		Digest: sha256.Sum256([]byte(secret)), CreatedAt: epoch,
	}
}

func sameToken(t *testing.T, got, want schema.Token) {
	t.Helper()
	if !got.CreatedAt.Equal(want.CreatedAt) || !got.RevokedAt.Equal(want.RevokedAt) {
		t.Fatalf("created and revoked at: got %v, %v, want %v, %v",
			got.CreatedAt, got.RevokedAt, want.CreatedAt, want.RevokedAt)
	}
	got.CreatedAt, got.RevokedAt = want.CreatedAt, want.RevokedAt
	equal(t, "token", got, want)
}

func createsTokens(t *testing.T, store LinkStores) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	zeros := newToken(a.ID, "zeros")
	zeros.Digest, zeros.Name, zeros.Prefix = [32]byte{}, "", ""
	must(t, store.CreateToken(t.Context(), &zeros))
	owners := map[schema.Token]schema.Account{
		addToken(t, store, a.ID, "one"): a, addToken(t, store, a.ID, "two"): a, addToken(t, store, b.ID, "three"): b,
		zeros: a,
	}
	ids := map[int64]bool{0: true}
	for want, owner := range owners {
		gotToken, gotAccount, err := store.TokenByDigest(t.Context(), want.Digest)
		must(t, err)
		sameToken(t, gotToken, want)
		sameAccount(t, gotAccount, owner)
		ids[want.ID] = true
	}
	equal(t, "distinct IDs", len(ids)-1, len(owners))
}

func refusesTakenDigest(t *testing.T, store LinkStores) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	want := addToken(t, store, a.ID, "secret")
	other := newToken(b.ID, "secret")
	mustFail(t, store.CreateToken(t.Context(), &other), schema.CodeConflict)
	got, _, err := store.TokenByDigest(t.Context(), want.Digest)
	must(t, err)
	sameToken(t, got, want)
}

func missesToken(t *testing.T, store LinkStores) {
	owner := addAccount(t, store, "a@example.org")
	digest := addToken(t, store, owner.ID, "secret").Digest
	digest[31]++
	_, _, err := store.TokenByDigest(t.Context(), digest)
	mustFail(t, err, schema.CodeNotFound)
}

func findsTokenOfSuspended(t *testing.T, store LinkStores) {
	owner := addAccount(t, store, "a@example.org")
	token := addToken(t, store, owner.ID, "secret")
	must(t, store.SetSuspended(t.Context(), owner.ID, true))
	_, account, err := store.TokenByDigest(t.Context(), token.Digest)
	must(t, err)
	equal(t, "suspended", account.Suspended, true)
}

func revokesToken(t *testing.T, store LinkStores) {
	owner := addAccount(t, store, "a@example.org")
	token, other := addToken(t, store, owner.ID, "secret"), addToken(t, store, owner.ID, "other")
	for i := range 3 {
		must(t, store.RevokeToken(t.Context(), token.ID, epoch.Add(time.Duration(i)*time.Hour)))
		_, _, err := store.TokenByDigest(t.Context(), token.Digest)
		mustFail(t, err, schema.CodeNotFound)
	}
	got, _, err := store.TokenByDigest(t.Context(), other.Digest)
	must(t, err)
	sameToken(t, got, other)
}

func revokesUnknown(t *testing.T, store LinkStores) {
	owner := addAccount(t, store, "a@example.org")
	token := addToken(t, store, owner.ID, "secret")
	mustFail(t, store.RevokeToken(t.Context(), token.ID+1000, epoch), schema.CodeNotFound)
}
