package storetest

import (
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// TestUpgradedLinks checks a store whose data was written before sessions came: account 1 with email a@example.org has
// a token "name" with a digest of zeros, domain 1, on it one link with ordinal 1, and the verified domain
// verified.example.org.
func TestUpgradedLinks(t *testing.T, store schema.Database) {
	t.Run("an old token has never been used", func(t *testing.T) {
		token, account, err := store.TokenByDigest(t.Context(), [32]byte{})
		testkit.Must(t, err)
		testkit.Equal(t, "name of the token", token.Name, "name")
		testkit.Equal(t, "time of its last use", token.UsedAt, time.Time{})
		testkit.Equal(t, "its account", account.Email, "a@example.org")
		testkit.Must(t, store.UseTokens(t.Context(), map[int64]time.Time{token.ID: epoch}))
	})
	t.Run("the records of an old verified domain are checked", func(t *testing.T) {
		due, err := store.DomainsToCheck(t.Context(), time.Now(), time.Now().Add(time.Hour), 10)
		testkit.Must(t, err)
		if len(due) != 1 || due[0].Host != "verified.example.org" || due[0].VerifiedAt.IsZero() || !due[0].FailingSince.IsZero() {
			t.Errorf("due are %+v", due)
		}
	})
	t.Run("an old link is not taken down", func(t *testing.T) {
		link, err := store.Link(t.Context(), 1, "hash")
		testkit.Must(t, err)
		testkit.Equal(t, "stop of a link on an unverified domain", link.Stopped, schema.HostLost)
	})
	t.Run("an old domain keeps its links", func(t *testing.T) {
		testkit.WantCode(t, store.DeleteDomain(t.Context(), 1), schema.CodeConflict)
		testkit.Equal(t, "ordinal of the next link", addLink(t, store, 1, 1, "next").Ordinal, 2)
	})
}

// OldClick is a click that was counted before reports came: without an account, a referrer and a country.
type OldClick struct {
	At      time.Time
	Device  schema.Device
	Browser string
}

// TestUpgradedClicks checks a store whose data was written before reports came: it has counted old on link 7 of partition
// 0, all in lane 3 of the incarnation of zeros, with offsets from 0 and numbers from 1. afterwards is called before the
// last check, when the upgraded store has counted more clicks.
func TestUpgradedClicks(t *testing.T, store ClickStores, old []OldClick, afterwards func(t *testing.T)) {
	const account = 2
	clicks := make([]click, len(old))
	for i, c := range old {
		clicks[i] = click{lane: schema.Lane{Number: 3}, link: 7, at: c.At, device: c.Device, browser: c.Browser}
	}
	model := newModel()
	model.count(model.batch(0, clicks...))
	model.partition(0).old, model.partition(0).unknown = true, uint64(len(old))
	t.Run("keeps what was counted, and reports it without referrer, country and account", func(t *testing.T) {
		model.check(t, store)
		model.checkAccountReport(t, store, account, time.Time{})
	})
	t.Run("goes on counting", func(t *testing.T) {
		later := clicksOf(7, 2)
		for i := range later {
			later[i].lane, later[i].account, later[i].at = clicks[0].lane, account, clicks[0].at
		}
		model.insert(t, store, 0, later...)
		model.check(t, store)
	})
	t.Run("reports the same afterwards", func(t *testing.T) {
		afterwards(t)
		model.check(t, store)
	})
}
