package storetest

import (
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var leaseBehaviours = []behaviour[schema.Database]{
	{"TakeLease grants a share of what nobody has, down to single clicks", grantsShares},
	{"TakeLease of concurrent holders grants the limit, and no more", grantsTheLimit},
	{"TakeLease grants nothing to holders that are not known or have ended, for links that are gone or have no limit",
		grantsNothing},
	{"TakeLease follows a limit that is changed", followsLimit},
	{"TakeLease without memory goes on from what is spent", goesOn},
	{"StateLeases leaves for others what is given back", givesBack},
	{"calls that arrive after later ones change nothing", ignoresLateCalls},
	{"EndLeases gives back what was not spent, once", endsOnce},
}

var leaseHolders = []schema.Incarnation{{1}, {2}, {3}, {4}}

// limitedLink returns the ID of a link with a limit, of which holders may take leases.
func limitedLink(t *testing.T, store schema.Database, most int64) int64 {
	t.Helper()
	link := addLimitedLink(t, store, addAccount(t, store, "owner@example.org").ID, "limited", most)
	for _, holder := range leaseHolders {
		testkit.Must(t, store.AddLeaseHolder(t.Context(), holder))
		testkit.Must(t, store.AddLeaseHolder(t.Context(), holder)) // again
	}
	return link.ID
}

func addLimitedLink(t *testing.T, store schema.Database, account int64, hash string, most int64) schema.Link {
	t.Helper()
	link := newLink(account, 0, hash)
	link.Behaviour = &schema.Behaviour{MaxClicks: most}
	testkit.Must(t, store.CreateLink(t.Context(), &link))
	return link
}

func takeLease(t *testing.T, store schema.Database, holder int, lease schema.LimitLease) (granted int64) {
	t.Helper()
	got, err := store.TakeLease(t.Context(), leaseHolders[holder], lease)
	testkit.Must(t, err)
	testkit.Equal(t, "link and call", [2]int64{got.LinkID, got.Call}, [2]int64{lease.LinkID, lease.Call})
	return got.Granted
}

func wantUse(t *testing.T, store schema.Database, link, granted, spent int64) {
	t.Helper()
	use, err := store.LimitUse(t.Context(), []int64{link, link + 1000})
	testkit.Must(t, err)
	want := map[int64]schema.LimitUse{link: {Granted: granted, Spent: spent}}
	testkit.Equal(t, "use", use, want)
}

func grantsShares(t *testing.T, store schema.Database) {
	link := limitedLink(t, store, 100*schema.LeaseShare)
	testkit.Equal(t, "first", takeLease(t, store, 0, schema.LimitLease{LinkID: link, Call: 1, Granted: -1}), int64(100))
	testkit.Equal(t, "of the rest", takeLease(t, store, 1, schema.LimitLease{LinkID: link, Call: 1, Granted: -1}),
		int64(96))
	testkit.Equal(t, "more", takeLease(t, store, 0, schema.LimitLease{LinkID: link, Call: 2, Granted: 100, Spent: 90}),
		int64(193))
	wantUse(t, store, link, 289, 90)
	large := addLimitedLink(t, store, addAccount(t, store, "other@example.org").ID, "large", schema.MaxClickLimit).ID
	testkit.Equal(t, "at most", takeLease(t, store, 0, schema.LimitLease{LinkID: large, Call: 1, Granted: -1}),
		int64(schema.MaxLease))
	empty, err := store.LimitUse(t.Context(), nil)
	testkit.Must(t, err)
	testkit.Equal(t, "use of no links", len(empty), 0)
}

func grantsTheLimit(t *testing.T, store schema.Database) {
	const most = 200
	link := limitedLink(t, store, most)
	granted := make([]int64, len(leaseHolders))
	for _, err := range concurrently(len(leaseHolders), func(i int) error {
		for call := int64(1); ; call++ {
			got, err := store.TakeLease(t.Context(), leaseHolders[i],
				schema.LimitLease{LinkID: link, Call: call, Granted: granted[i], Spent: granted[i]})
			if err != nil || got.Granted == granted[i] {
				return err
			}
			granted[i] = got.Granted
		}
	}) {
		testkit.Must(t, err)
	}
	sum := int64(0)
	for _, n := range granted {
		sum += n
	}
	testkit.Equal(t, "granted", sum, int64(most))
	wantUse(t, store, link, most, most)
}

func grantsNothing(t *testing.T, store schema.Database) {
	link := limitedLink(t, store, 10)
	_, err := store.TakeLease(t.Context(), schema.Incarnation{9}, schema.LimitLease{LinkID: link, Call: 1})
	testkit.WantCode(t, err, schema.CodeNotFound)
	testkit.Must(t, store.EndLeases(t.Context(), leaseHolders[3], nil))
	testkit.Must(t, store.AddLeaseHolder(t.Context(), leaseHolders[3])) // late
	_, err = store.TakeLease(t.Context(), leaseHolders[3], schema.LimitLease{LinkID: link, Call: 1})
	testkit.WantCode(t, err, schema.CodeNotFound)
	_, err = store.TakeLease(t.Context(), leaseHolders[0], schema.LimitLease{LinkID: link + 1000, Call: 1})
	testkit.WantCode(t, err, schema.CodeNotFound)
	before, err := schema.FindLink(t.Context(), store, 0, "limited")
	testkit.Must(t, err)
	testkit.Must(t, store.UpdateLink(t.Context(), &before, schema.LinkEdit{Behaviour: new(schema.Behaviour)}, epoch))
	testkit.Equal(t, "without a limit", takeLease(t, store, 0, schema.LimitLease{LinkID: link, Call: 1, Granted: -1}),
		int64(0))
	testkit.Must(t, store.DeleteLink(t.Context(), before, epoch))
	_, err = store.TakeLease(t.Context(), leaseHolders[0], schema.LimitLease{LinkID: link, Call: 2})
	testkit.WantCode(t, err, schema.CodeNotFound)
}

func followsLimit(t *testing.T, store schema.Database) {
	id := limitedLink(t, store, 10)
	link, err := schema.FindLink(t.Context(), store, 0, "limited")
	testkit.Must(t, err)
	set := func(most int64) {
		t.Helper()
		testkit.Must(t, store.UpdateLink(t.Context(), &link, schema.LinkEdit{Behaviour: &schema.Behaviour{MaxClicks: most}},
			epoch))
	}
	testkit.Equal(t, "first", takeLease(t, store, 0, schema.LimitLease{LinkID: id, Call: 1, Granted: 4, Spent: 4}),
		int64(5))
	set(5)
	testkit.Equal(t, "lowered to what is granted",
		takeLease(t, store, 1, schema.LimitLease{LinkID: id, Call: 1, Granted: -1}), int64(0))
	set(3)
	testkit.Equal(t, "lowered below it",
		takeLease(t, store, 0, schema.LimitLease{LinkID: id, Call: 2, Granted: 5, Spent: 5}), int64(5))
	set(6)
	testkit.Equal(t, "raised", takeLease(t, store, 1, schema.LimitLease{LinkID: id, Call: 2, Granted: 0}), int64(1))
	testkit.Equal(t, "used up", takeLease(t, store, 0, schema.LimitLease{LinkID: id, Call: 3, Granted: 5, Spent: 5}),
		int64(5))
}

func goesOn(t *testing.T, store schema.Database) {
	link := limitedLink(t, store, 10)
	takeLease(t, store, 0, schema.LimitLease{LinkID: link, Call: 1, Granted: 3, Spent: 3})
	testkit.Must(t, store.StateLeases(t.Context(), leaseHolders[0],
		[]schema.LimitLease{{LinkID: link, Call: 2, Granted: 3, Spent: 3}}))
	got, err := store.TakeLease(t.Context(), leaseHolders[0], schema.LimitLease{LinkID: link, Call: 3, Granted: -1})
	testkit.Must(t, err)
	testkit.Equal(t, "lease", got, schema.LimitLease{LinkID: link, Call: 3, Granted: 4, Spent: 3})
	testkit.Must(t, store.StateLeases(t.Context(), leaseHolders[0],
		[]schema.LimitLease{{LinkID: link, Call: 4, Granted: -1}}))
	wantUse(t, store, link, 3, 3)
}

func givesBack(t *testing.T, store schema.Database) {
	link := limitedLink(t, store, 5)
	other := addLimitedLink(t, store, addAccount(t, store, "other@example.org").ID, "other", 5).ID
	testkit.Equal(t, "taken", takeLease(t, store, 0, schema.LimitLease{LinkID: link, Call: 1, Granted: 4, Spent: 1}),
		int64(5))
	testkit.Equal(t, "taken", takeLease(t, store, 0, schema.LimitLease{LinkID: other, Call: 1, Granted: 4, Spent: 1}),
		int64(5))
	testkit.Equal(t, "left", takeLease(t, store, 1, schema.LimitLease{LinkID: link, Call: 1, Granted: -1}), int64(0))
	testkit.Must(t, store.StateLeases(t.Context(), leaseHolders[0],
		[]schema.LimitLease{{LinkID: link, Call: 2, Granted: 2, Spent: 2}, {LinkID: other, Call: 3, Granted: 3, Spent: 1}}))
	wantUse(t, store, link, 2, 2)
	wantUse(t, store, other, 3, 1)
	testkit.Equal(t, "left afterwards", takeLease(t, store, 1, schema.LimitLease{LinkID: link, Call: 2, Granted: 0}),
		int64(1))
}

func ignoresLateCalls(t *testing.T, store schema.Database) {
	link := limitedLink(t, store, 100)
	takeLease(t, store, 0, schema.LimitLease{LinkID: link, Call: 5, Granted: 20, Spent: 7})
	wantUse(t, store, link, 22, 7)
	_, err := store.TakeLease(t.Context(), leaseHolders[0], schema.LimitLease{LinkID: link, Call: 4, Granted: 1, Spent: 1})
	testkit.WantCode(t, err, schema.CodeNotFound)
	testkit.Must(t, store.StateLeases(t.Context(), leaseHolders[0],
		[]schema.LimitLease{{LinkID: link, Call: 5, Granted: 8, Spent: 8}}))
	wantUse(t, store, link, 22, 7)
	testkit.Must(t, store.EndLeases(t.Context(), leaseHolders[0], map[int64]int64{link: 9}))
	testkit.Must(t, store.StateLeases(t.Context(), leaseHolders[0],
		[]schema.LimitLease{{LinkID: link, Call: 6, Granted: 30, Spent: 30}}))
	wantUse(t, store, link, 9, 9)
}

func endsOnce(t *testing.T, store schema.Database) {
	link := limitedLink(t, store, 100)
	for i := range 3 {
		takeLease(t, store, i, schema.LimitLease{LinkID: link, Call: 1, Granted: 20, Spent: 5})
	}
	testkit.Must(t, store.EndLeases(t.Context(), leaseHolders[0], map[int64]int64{link: 8, link + 1000: 3}))
	testkit.Must(t, store.EndLeases(t.Context(), leaseHolders[0], map[int64]int64{link: 8})) // again
	testkit.Must(t, store.EndLeases(t.Context(), leaseHolders[1], map[int64]int64{link: 2})) // the store has recorded more
	use, err := store.LimitUse(t.Context(), []int64{link})
	testkit.Must(t, err)
	testkit.Equal(t, "spent", use[link].Spent, int64(8+5+5))
	testkit.Must(t, store.EndLeases(t.Context(), leaseHolders[2], nil))
	wantUse(t, store, link, 8+5+5, 8+5+5)
}
