package storetest

import (
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

func ownedPrefersDefault(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	addLink(t, store, owner.ID, domain.ID, "hash") // the older link
	want := addLink(t, store, owner.ID, 0, "hash")
	got, err := schema.FindOwnedLink(t.Context(), store, owner.ID, "hash", nil)
	testkit.Must(t, err)
	testkit.Equal(t, "link", got, want)
}

func ownedFallsBackToOldest(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	later := addDomain(t, store, owner.ID, "later.example.org", true)
	oldest := addDomain(t, store, owner.ID, "oldest.example.org", true)
	addLink(t, store, other.ID, 0, "hash") // on the default domain, but of another account
	want := addLink(t, store, owner.ID, oldest.ID, "hash")
	addLink(t, store, owner.ID, later.ID, "hash")
	want.Host = oldest.Host
	got, err := schema.FindOwnedLink(t.Context(), store, owner.ID, "hash", nil)
	testkit.Must(t, err)
	testkit.Equal(t, "link", got, want)
}

func ownedOnDomain(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	empty := addDomain(t, store, owner.ID, "empty.example.org", true)
	onDefault, onDomain := addLink(t, store, owner.ID, 0, "hash"), addLink(t, store, owner.ID, domain.ID, "hash")
	addLink(t, store, owner.ID, domain.ID, "custom")
	onDomain.Host = domain.Host
	for _, want := range []schema.Link{onDefault, onDomain} {
		got, err := schema.FindOwnedLink(t.Context(), store, owner.ID, "hash", &want.DomainID)
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, want)
	}
	_, err := schema.FindOwnedLink(t.Context(), store, owner.ID, "hash", &empty.ID)
	testkit.WantCode(t, err, schema.CodeNotFound)
	defaultDomain := int64(0)
	_, err = schema.FindOwnedLink(t.Context(), store, owner.ID, "custom", &defaultDomain)
	testkit.WantCode(t, err, schema.CodeNotFound)
}

func ownedMissesOthers(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	addLink(t, store, owner.ID, 0, "hash")
	addLink(t, store, owner.ID, domain.ID, "custom")
	for hash, domainID := range map[string]int64{"hash": 0, "custom": domain.ID, "none": 0} {
		_, err := schema.FindOwnedLink(t.Context(), store, other.ID, hash, nil)
		testkit.WantCode(t, err, schema.CodeNotFound)
		_, err = schema.FindOwnedLink(t.Context(), store, other.ID, hash, &domainID)
		testkit.WantCode(t, err, schema.CodeNotFound)
	}
}

// keepsLinks checks one row of each kind. Other tests check all fields, without reopening.
func keepsLinks(t *testing.T, open Open[schema.Database]) {
	store, reopen := open(t)
	owner := addAccount(t, store, "a@example.org")
	token := addToken(t, store, owner.ID, "secret")
	revoked := addToken(t, store, owner.ID, "revoked")
	testkit.Must(t, store.RevokeToken(t.Context(), revoked.ID, epoch, false))
	token.UsedAt = epoch.Add(time.Hour)
	testkit.Must(t, store.UseTokens(t.Context(), map[int64]time.Time{token.ID: token.UsedAt}))
	session, ended := addSession(t, store, owner, "secret"), addSession(t, store, owner, "ended")
	owner.PasswordHash = "$argon2id$new"
	testkit.Must(t, store.SetPassword(t.Context(), owner.ID, owner.PasswordHash, session.ID))
	wantAttempts(t, store, 1, window(0), 1, 3)
	deleted := addDomain(t, store, owner.ID, "deleted.example.org", true)
	testkit.Must(t, store.DeleteDomain(t.Context(), deleted.ID))
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	link := addLink(t, store, owner.ID, domain.ID, "hash")
	testkit.Must(t, store.UpdateLink(t.Context(), &link, schema.LinkEdit{Active: new(false)}, hour(1)))
	link.Host = domain.Host

	store = reopen()
	gotToken, gotAccount, err := store.TokenByDigest(t.Context(), token.Digest)
	testkit.Must(t, err)
	testkit.Equal(t, "token", gotToken, token)
	testkit.Equal(t, "account", gotAccount, owner)
	_, _, err = store.TokenByDigest(t.Context(), revoked.Digest)
	testkit.WantCode(t, err, schema.CodeNotFound)
	hasSession(t, store, session)
	hasNoSession(t, store, ended)
	wantAttempts(t, store, 1, window(0), 4, 4)
	wantDomains(t, store, owner.ID, domain)
	gotDomain, err := store.VerifiedDomain(t.Context(), domain.Host)
	testkit.Must(t, err)
	testkit.Equal(t, "domain", gotDomain, domain)
	gotLink, err := schema.FindLink(t.Context(), store, domain.ID, "hash")
	testkit.Must(t, err)
	testkit.Equal(t, "link", gotLink, link)

	again := newLink(owner.ID, domain.ID, "hash")
	testkit.WantCode(t, store.CreateLink(t.Context(), &again), schema.CodeConflict)
	next := addLink(t, store, owner.ID, 0, "hash")
	testkit.Equal(t, "next ordinal", next.Ordinal, 2)
	if next.ID == link.ID {
		t.Fatalf("ID %d was used twice", link.ID)
	}
}
