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
	{"RevokeToken ends what the token has made, unless it is kept", endsWithToken},
	{"what a token has made ends when the token expires", endsWithExpiry},
	{"nothing made while its token is revoked outlives it", endsRacing},
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
		testkit.Must(t, store.RevokeToken(t.Context(), token.ID, epoch.Add(time.Duration(i)*time.Hour), false))
		_, _, err := store.TokenByDigest(t.Context(), token.Digest)
		testkit.WantCode(t, err, schema.CodeNotFound)
	}
	got, _, err := store.TokenByDigest(t.Context(), other.Digest)
	testkit.Must(t, err)
	testkit.Equal(t, "token", got, other)
}

// madeBy adds a share and a webhook that a token has made.
func madeBy(t *testing.T, store schema.Database, token schema.Token) (schema.Share, schema.Webhook) {
	t.Helper()
	share := addShare(t, store, token.AccountID, "share of "+token.Name, func(s *schema.Share) { s.TokenID = token.ID })
	hook := addWebhook(t, store, token.AccountID, func(h *schema.Webhook) { h.TokenID = token.ID })
	testkit.Must(t, store.TestWebhook(t.Context(), token.AccountID, hook.ID))
	return share, hook
}

// wantEnded requires that a share is open and a webhook on, or both ended.
func wantEnded(t *testing.T, store schema.Database, share schema.Share, hook schema.Webhook, ended bool) {
	t.Helper()
	_, _, err := store.ShareByDigest(t.Context(), share.Digest, time.Now())
	testkit.Equal(t, "the share has ended", schema.ErrorCode(err) == schema.CodeNotFound, ended)
	now := webhookOf(t, store, hook)
	testkit.Equal(t, "the webhook is on", now.Active, !ended)
	testkit.Equal(t, "what waits for it", now.Waiting > 0, !ended)
	testkit.Equal(t, "reason", now.OffReason, map[bool]string{true: schema.OffToken}[ended])
	err = store.TestWebhook(t.Context(), hook.AccountID, hook.ID)
	testkit.Equal(t, "the webhook gets no delivery", schema.ErrorCode(err) == schema.CodeNotFound, ended)
}

func endsWithToken(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	ending, kept, other := addToken(t, store, owner.ID, "1"), addToken(t, store, owner.ID, "2"),
		addToken(t, store, owner.ID, "3")
	endingShare, endingHook := madeBy(t, store, ending)
	keptShare, keptHook := madeBy(t, store, kept)
	otherShare, otherHook := madeBy(t, store, other)
	noShare, noHook := madeBy(t, store, schema.Token{AccountID: owner.ID, Name: "none"})
	moved := addWebhook(t, store, owner.ID, func(h *schema.Webhook) { h.TokenID = ending.ID })
	moved.TokenID = other.ID
	testkit.Must(t, store.UpdateWebhook(t.Context(), &moved))

	for range 2 {
		testkit.Must(t, store.RevokeToken(t.Context(), ending.ID, epoch, false))
		wantEnded(t, store, endingShare, endingHook, true)
		testkit.Must(t, store.RevokeToken(t.Context(), kept.ID, epoch, true))
		wantEnded(t, store, keptShare, keptHook, false)
		testkit.Must(t, store.RevokeToken(t.Context(), kept.ID, epoch, false)) // they are not its any more
		wantEnded(t, store, keptShare, keptHook, false)
		wantEnded(t, store, otherShare, otherHook, false)
		wantEnded(t, store, noShare, noHook, false)
		testkit.Equal(t, "a webhook that another token has changed", webhookOf(t, store, moved).Active, true)
	}
	late := newShare(owner.ID, "late")
	late.TokenID = ending.ID
	testkit.WantCode(t, store.CreateShare(t.Context(), &late), schema.CodeUnauthorized)
	endingHook.ID = 0
	testkit.WantCode(t, store.CreateWebhook(t.Context(), &endingHook), schema.CodeUnauthorized)
	otherHook.TokenID = ending.ID
	testkit.WantCode(t, store.UpdateWebhook(t.Context(), &otherHook), schema.CodeUnauthorized)
	testkit.Equal(t, "a webhook that could not be changed", webhookOf(t, store, otherHook).TokenID, other.ID)
}

func endsWithExpiry(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	expires := func(secret string, at time.Time) schema.Token {
		token := newToken(owner.ID, secret)
		token.ExpiresAt = at.UTC().Truncate(time.Second)
		testkit.Must(t, store.CreateToken(t.Context(), &token))
		return token
	}
	later := time.Now().Add(time.Hour)
	over, valid := expires("over", time.Now().Add(-time.Minute)), expires("valid", later)
	overShare, overHook := madeBy(t, store, over)
	validShare, validHook := madeBy(t, store, valid)
	for _, made := range []struct{ share, token time.Time }{{later.Add(time.Hour), later}, {later.Add(-time.Minute),
		later.Add(-time.Minute)}} {
		share := addShare(t, store, owner.ID, made.share.String(), func(s *schema.Share) {
			s.TokenID, s.ExpiresAt = valid.ID, made.share.UTC().Truncate(time.Second)
		})
		got, err := store.Share(t.Context(), owner.ID, share.ID)
		testkit.Must(t, err)
		testkit.Equal(t, "share", got, share)
		testkit.Equal(t, "end", got.ExpiresAt, made.token.UTC().Truncate(time.Second))
	}
	testkit.Equal(t, "end of the webhook", validHook.ExpiresAt.UTC(), valid.ExpiresAt)
	claimed, err := store.ClaimWebhooks(t.Context(), "holder", longLease, 10)
	testkit.Must(t, err)
	testkit.Equal(t, "claimed", len(claimed), 1)
	testkit.Equal(t, "webhook that is claimed", claimed[0].ID, validHook.ID)
	wantEnded(t, store, overShare, overHook, true)
	wantEnded(t, store, validShare, validHook, false)
	overHook.TokenID = valid.ID
	testkit.Must(t, store.UpdateWebhook(t.Context(), &overHook))
	now := webhookOf(t, store, overHook)
	testkit.Equal(t, "on again by another token", now.Active && now.OffReason == "", true)
}

// endsRacing makes shares and webhooks while their token is revoked.
func endsRacing(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	for round := range 5 {
		token := addToken(t, store, owner.ID, fmt.Sprint("racing ", round))
		for _, err := range concurrently(9, func(i int) error {
			switch i % 3 {
			case 0:
				share := newShare(owner.ID, fmt.Sprint(round, i))
				share.TokenID = token.ID
				return store.CreateShare(t.Context(), &share)
			case 1:
				return store.RevokeToken(t.Context(), token.ID, epoch, false)
			}
			hook := schema.Webhook{AccountID: owner.ID, URL: "https://example.org/", Events: allEvents, Active: true,
				Secret: "whsec_bmV3", CreatedAt: epoch, TokenID: token.ID}
			return store.CreateWebhook(t.Context(), &hook)
		}) {
			if code := schema.ErrorCode(err); err != nil && code != schema.CodeUnauthorized {
				t.Error(err)
			}
		}
		shares, err := store.Shares(t.Context(), owner.ID)
		testkit.Must(t, err)
		testkit.Equal(t, "shares of the revoked token", len(shares), 0)
		hooks, err := store.Webhooks(t.Context(), owner.ID)
		testkit.Must(t, err)
		for _, hook := range hooks {
			testkit.Equal(t, "a webhook of the revoked token is on", hook.Active, false)
			testkit.Must(t, store.DeleteWebhook(t.Context(), owner.ID, hook.ID))
		}
	}
}

func revokesUnknown(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	token := addToken(t, store, owner.ID, "secret")
	testkit.WantCode(t, store.RevokeToken(t.Context(), token.ID+1000, epoch, false), schema.CodeNotFound)
}

func tellsValidTokens(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	first, second, revoked := addToken(t, store, a.ID, "1"), addToken(t, store, b.ID, "2"), addToken(t, store, a.ID, "3")
	testkit.Must(t, store.RevokeToken(t.Context(), revoked.ID, epoch, false))
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
	testkit.Must(t, store.RevokeToken(t.Context(), tokens[2].ID, epoch, false))
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
