package storetest

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var shareBehaviours = []behaviour[schema.Database]{
	{"shares are kept, listed and deleted by their account", keepsShares},
	{"CreateShare bounds the shares of an account", boundsShares},
	{"CreateShare rejects a taken digest", refusesShares},
	{"ShareByDigest finds a share while its report may be read", findsShare},
}

func newShare(accountID int64, secret string) schema.Share {
	return schema.Share{AccountID: accountID, Digest: sha256.Sum256([]byte(secret)), CreatedAt: epoch.UTC()}
}

func addShare(
	t *testing.T, store schema.ShareStore, accountID int64, secret string, edit func(*schema.Share),
) schema.Share {
	t.Helper()
	share := newShare(accountID, secret)
	if edit != nil {
		edit(&share)
	}
	testkit.Must(t, store.CreateShare(t.Context(), &share))
	return share
}

func keepsShares(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	bare := addShare(t, store, owner.ID, "bare", nil)
	addShare(t, store, other.ID, "other", nil)
	full := addShare(t, store, owner.ID, "full", func(s *schema.Share) {
		s.LinkID, s.Hash, s.DomainID, s.Tag = 7, "sale", new(int64(3)), "spring"
		s.ExpiresAt, s.PasswordHash, s.HideTargets, s.TimeZone = hour(1).UTC(), "$argon2id$x", true, "Asia/Tokyo"
	})
	got, err := store.Shares(t.Context(), owner.ID)
	testkit.Must(t, err)
	testkit.Equal(t, "shares", got, []schema.Share{full, bare})
	one, err := store.Share(t.Context(), owner.ID, full.ID)
	testkit.Must(t, err)
	testkit.Equal(t, "share", one, full)

	_, err = store.Share(t.Context(), other.ID, full.ID)
	testkit.WantCode(t, err, schema.CodeNotFound)
	testkit.WantCode(t, store.DeleteShare(t.Context(), other.ID, full.ID), schema.CodeNotFound)
	testkit.Must(t, store.DeleteShare(t.Context(), owner.ID, full.ID))
	testkit.WantCode(t, store.DeleteShare(t.Context(), owner.ID, full.ID), schema.CodeNotFound)
	got, err = store.Shares(t.Context(), owner.ID)
	testkit.Must(t, err)
	testkit.Equal(t, "shares left", got, []schema.Share{bare})
}

func boundsShares(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	for i := range schema.MaxShares - 5 {
		addShare(t, store, owner.ID, fmt.Sprint("one ", i), nil)
	}
	refused := 0
	for _, err := range concurrently(10, func(i int) error {
		share := newShare(owner.ID, fmt.Sprint("many ", i))
		return store.CreateShare(t.Context(), &share)
	}) {
		if err != nil {
			testkit.WantCode(t, err, schema.CodeConflict)
			refused++
		}
	}
	testkit.Equal(t, "shares beyond the limit", refused, 5)
	addShare(t, store, other.ID, "other", nil)
}

func refusesShares(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	addShare(t, store, owner.ID, "secret", nil)
	again := newShare(owner.ID, "secret")
	testkit.WantCode(t, store.CreateShare(t.Context(), &again), schema.CodeConflict)
}

func findsShare(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	link, domain := addLink(t, store, owner.ID, 0, "sale"), addDomain(t, store, owner.ID, "go.example.org", true)
	foreign := addLink(t, store, other.ID, 0, "foreign")
	all := addShare(t, store, owner.ID, "all", func(s *schema.Share) { s.ExpiresAt = hour(1).UTC() })
	byTag := addShare(t, store, owner.ID, "tag", func(s *schema.Share) { s.Tag, s.DomainID = "spring", new(int64(0)) })
	ofLink := addShare(t, store, owner.ID, "link", func(s *schema.Share) {
		s.LinkID, s.Hash, s.DomainID = link.ID,
			link.Hash, &link.DomainID
	})
	ofDomain := addShare(t, store, owner.ID, "domain", func(s *schema.Share) { s.DomainID = &domain.ID })
	ofForeign := addShare(t, store, owner.ID, "foreign", func(s *schema.Share) {
		s.LinkID, s.Hash = foreign.ID,
			foreign.Hash
	})
	found := func(share schema.Share, now time.Time) {
		t.Helper()
		got, account, err := store.ShareByDigest(t.Context(), share.Digest, now)
		testkit.Must(t, err)
		testkit.Equal(t, "share", got, share)
		testkit.Equal(t, "account", account, owner)
	}
	missed := func(share schema.Share, now time.Time) {
		t.Helper()
		_, _, err := store.ShareByDigest(t.Context(), share.Digest, now)
		testkit.WantCode(t, err, schema.CodeNotFound)
	}
	found(all, hour(0))
	missed(all, hour(1))
	missed(newShare(owner.ID, "unknown"), hour(0))
	missed(ofForeign, hour(0))
	for _, share := range []schema.Share{byTag, ofLink, ofDomain} {
		found(share, hour(1000))
	}
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(2)))
	missed(ofLink, hour(3))
	_, err := store.RestoreLink(t.Context(), owner.ID, link.Hash, nil, hour(0), hour(3))
	testkit.Must(t, err)
	found(ofLink, hour(3))
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(4)))
	addLink(t, store, owner.ID, 0, link.Hash) // another link
	missed(ofLink, hour(4))
	testkit.Must(t, store.DeleteDomain(t.Context(), domain.ID))
	missed(ofDomain, hour(3))
	testkit.Must(t, store.SetSuspended(t.Context(), owner.ID, true))
	missed(byTag, hour(0))
	testkit.Must(t, store.SetSuspended(t.Context(), owner.ID, false))
	found(byTag, hour(0))
	testkit.Must(t, store.DeleteShare(t.Context(), owner.ID, byTag.ID))
	missed(byTag, hour(0))
}
