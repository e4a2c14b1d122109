package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var linkReuseBehaviours = []behaviour[schema.Database]{
	{"ReusableLink finds the newest link that redirects to a URL and matches", findsReusable},
	{"ReusableLink looks through all links to a URL", findsReusableOfMany},
	{"CreateLinks lets existing and earlier links stand for new ones", reusesInBatch},
	{"CreateLinks creates one link for concurrent calls", reusesOnce},
}

func anyLink(schema.Link) bool { return true }

// noteTargets lets all links of an account be found, a few at a time.
func noteTargets(t *testing.T, store schema.Database, accountID int64) {
	t.Helper()
	for left := int64(1); left > 0; {
		var err error
		left, err = store.NoteTargets(t.Context(), accountID, 7)
		testkit.Must(t, err)
	}
}

func findsReusable(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	lost := addDomain(t, store, owner.ID, "lost.example.org", false)
	const end = "/the-end-of-a-URL-that-is-long"
	add := func(accountID, domainID int64, url string, edit func(*schema.Link)) schema.Link {
		return addReusable(t, store, accountID, domainID, url, edit)
	}
	want := func(url string, domainID int64, want schema.Link, match func(schema.Link) bool) {
		t.Helper()
		noteTargets(t, store, owner.ID)
		got, err := store.ReusableLink(t.Context(), owner.ID, schema.ReuseKey{DomainID: domainID, URL: url}, hour(5), match)
		if want.ID == 0 {
			testkit.WantCode(t, err, schema.CodeNotFound)
			return
		}
		testkit.Must(t, err)
		testkit.Equal(t, "link to "+url, got, want)
	}
	for _, url := range []string{"http://a.b", "https://example.org" + end, "https://example.org/ü" + end,
		"https://example.org/" + strings.Repeat("ü", 2000)} {
		want(url, 0, schema.Link{}, anyLink)
		first := add(owner.ID, 0, url, nil)
		want(url, 0, first, anyLink)
		add(other.ID, 0, url, nil)
		add(owner.ID, 0, strings.Replace(url, "http", "HTTP", 1), nil)
		on := add(owner.ID, domain.ID, url, nil)
		add(owner.ID, lost.ID, url, nil)
		want(url, 0, first, anyLink)
		want(url, domain.ID, on, anyLink)
		want(url, lost.ID, schema.Link{}, anyLink)
		second := add(owner.ID, 0, url, func(l *schema.Link) { l.Title = "second" })
		want(url, 0, second, anyLink)
		want(url, 0, first, func(l schema.Link) bool { return l.Title == "" })
		want(url, 0, schema.Link{}, func(l schema.Link) bool { return l.Title == "third" })
		add(owner.ID, 0, url, func(l *schema.Link) { l.Active = false })
		add(owner.ID, 0, url, func(l *schema.Link) { l.ExpiresAt = hour(5) })
		add(owner.ID, 0, url, func(l *schema.Link) {
			l.Behaviour, l.PasswordHash = &schema.Behaviour{Password: 1}, "hash"
		})
		deleted := add(owner.ID, 0, url, nil)
		testkit.Must(t, store.DeleteLink(t.Context(), deleted, hour(1)))
		down := add(owner.ID, 0, url, nil)
		testkit.Must(t, store.SetTakenDown(t.Context(), 0, down.Hash, true))
		spent := add(owner.ID, 0, url, func(l *schema.Link) { l.Behaviour = &schema.Behaviour{MaxClicks: 3} })
		spend(t, store, spent, func() { want(url, 0, spent, anyLink) })
		want(url, 0, second, anyLink)
		testkit.Must(t, store.UpdateLink(t.Context(), &second, schema.LinkEdit{URL: new("https://gone.example/")}, hour(1)))
		want(url, 0, first, anyLink)
		later := add(owner.ID, 0, url, func(l *schema.Link) { l.ExpiresAt = hour(6) })
		want(url, 0, later, anyLink)
		testkit.Must(t, store.DeleteLink(t.Context(), later, hour(1)))
	}
}

// addReusable adds a link and reads it.
func addReusable(
	t *testing.T, store schema.Database, accountID, domainID int64, url string, edit func(*schema.Link),
) schema.Link {
	t.Helper()
	link := newLink(accountID, domainID, schema.NewHash())
	if link.URL = url; edit != nil {
		edit(&link)
	}
	testkit.Must(t, store.CreateLink(t.Context(), &link))
	found, err := schema.FindLink(t.Context(), store, domainID, link.Hash)
	testkit.Must(t, err)
	return found
}

// spend spends the three clicks of a link, and calls half when one is left.
func spend(t *testing.T, store schema.Database, link schema.Link, half func()) {
	t.Helper()
	holder := schema.Incarnation{1}
	testkit.Must(t, store.AddLeaseHolder(t.Context(), holder))
	for call, n := range []int64{2, 3} {
		_, err := store.TakeLease(t.Context(), holder,
			schema.LimitLease{LinkID: link.ID, Call: int64(call + 1), Granted: -1, Spent: n})
		testkit.Must(t, err)
		if n == 2 {
			half()
		}
	}
}

func findsReusableOfMany(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	batch := newBatch(owner.ID, make([]string, 200)...)
	for i := range batch.Links {
		batch.Links[i].URL, batch.Links[i].Title = "https://example.org/same", fmt.Sprint(i)
	}
	createBatch(t, store, batch)
	testkit.Must(t, store.DeleteLink(t.Context(), batch.Links[5], hour(1)))
	noteTargets(t, store, owner.ID)
	restored, err := store.RestoreLink(t.Context(), owner.ID, batch.Links[5].Hash, nil, hour(0), hour(2))
	testkit.Must(t, err)
	batch.Links[5] = restored
	edited, to := addLink(t, store, owner.ID, 0, "edited"), batch.Links[0].URL // with no call of NoteTargets in between
	testkit.Must(t, store.UpdateLink(t.Context(), &edited, schema.LinkEdit{URL: &to, Title: new("edited")}, hour(1)))
	key := batch.Links[0].ReuseKey()
	for _, i := range []int{0, 1, 5, 63, 64, 128, 199} {
		got, err := store.ReusableLink(t.Context(), owner.ID, key, hour(1),
			func(l schema.Link) bool { return l.Title == fmt.Sprint(i) })
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, batch.Links[i])
	}
	got, err := store.ReusableLink(t.Context(), owner.ID, key, hour(1), anyLink)
	testkit.Must(t, err)
	testkit.Equal(t, "edited link", got, edited)
	_, err = store.ReusableLink(t.Context(), owner.ID, key, hour(1), func(schema.Link) bool { return false })
	testkit.WantCode(t, err, schema.CodeNotFound)
}

func reusesInBatch(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	old := newLink(owner.ID, 0, "old")
	old.URL = "https://example.org/old"
	testkit.Must(t, store.CreateLink(t.Context(), &old))
	named := func(hash string) func(schema.Link) bool { return func(l schema.Link) bool { return l.Hash == hash } }
	batch := newBatch(owner.ID, "", "", "", "new", "", "new", "other", "old", "")
	batch.Reuse = []func(schema.Link) bool{anyLink, nil, anyLink, nil, anyLink, named("new"), named("other"), named("old"),
		anyLink}
	for i, path := range []string{"old", "old", "new", "new", "new", "new", "new", "old", "third"} {
		batch.Links[i].URL = "https://example.org/" + path
	}
	var recorded []bool
	batch.Call = &schema.IdempotentCall{AccountID: owner.ID, Key: [32]byte{1}, At: epoch}
	batch.Answer = func([]schema.Link, []error) ([]byte, error) {
		recorded = batch.Reused
		return []byte("{}"), nil
	}
	createBatch(t, store, batch)
	testkit.Equal(t, "reused", batch.Reused, []bool{true, false, false, false, true, true, false, true, false})
	testkit.Equal(t, "reused, as recorded", recorded, batch.Reused)
	testkit.Equal(t, "link that stands for a new one", batch.Links[0], old)
	testkit.Equal(t, "link with its own hash", batch.Links[7], old)
	testkit.Equal(t, "the newest earlier link", batch.Links[4], batch.Links[3])
	testkit.Equal(t, "the earlier link with the hash", batch.Links[5], batch.Links[3])
	sameOrdinals(t, store, owner.ID, 6)
}

func reusesOnce(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	for round := range 3 {
		url := fmt.Sprintf("https://example.org/%d", round)
		ids := make([]int64, 64)
		var created int
		reused := make([]bool, 64)
		for _, err := range concurrently(64, func(i int) error {
			batch := newBatch(owner.ID, "")
			batch.Links[0].URL, batch.Reuse = url, []func(schema.Link) bool{anyLink}
			if err := store.CreateLinks(context.WithoutCancel(t.Context()), batch); err != nil {
				return err
			}
			ids[i], reused[i] = batch.Links[0].ID, batch.Reused[0]
			return batch.Errs[0]
		}) {
			testkit.Must(t, err)
		}
		for i := range ids {
			testkit.Equal(t, "ID", ids[i], ids[0])
			if !reused[i] {
				created++
			}
		}
		testkit.Equal(t, "created links", created, 1)
		sameOrdinals(t, store, owner.ID, int64(round+1))
	}
}
