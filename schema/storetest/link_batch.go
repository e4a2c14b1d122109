package storetest

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var linkBatchBehaviours = []behaviour[schema.Database]{
	{"CreateLinks creates links in their order, each as CreateLink does", createsBatch},
	{"CreateLinks says what is wrong with each link, and spends no ordinals on it", refusesPartsOfBatch},
	{"CreateLinks draws hashes until they are free", drawsHashes},
	{"CreateLinks fails if no drawn hash is free", drawsNoFreeHash},
	{"CreateLinks makes deleted links of the account anew, with other IDs", remakesBatch},
	{"CreateLinks creates nothing for an unknown account", createsBatchOfNobody},
	{"CreateLinks gives each hash to one of concurrent batches and calls", createsBatchesAtOnce},
	{"CreateLinks shows all links of a batch at the same moment", showsBatchAtOnce},
}

// newBatch returns a batch of links with the hashes on the default domain.
func newBatch(accountID int64, hashes ...string) *schema.LinkBatch {
	batch := &schema.LinkBatch{AccountID: accountID, NewHash: schema.NewHash}
	for _, hash := range hashes {
		batch.Links = append(batch.Links, newLink(0, 0, hash))
	}
	return batch
}

// createBatch creates a batch and requires the codes as its outcomes, "" for a link that was created.
func createBatch(t *testing.T, store schema.LinkStore, batch *schema.LinkBatch, codes ...schema.Code) {
	t.Helper()
	testkit.Must(t, store.CreateLinks(t.Context(), batch))
	testkit.Equal(t, "outcomes", len(batch.Errs), len(batch.Links))
	for i, err := range batch.Errs {
		want := schema.Code("")
		if i < len(codes) {
			want = codes[i]
		}
		if got := schema.ErrorCode(err); got != want {
			t.Fatalf("link %d, %q: %v, want code %q", i, batch.Links[i].Hash, err, want)
		}
	}
}

func createsBatch(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain, lost := addDomain(t, store, owner.ID, "go.example.org", true),
		addDomain(t, store, owner.ID, "later.example.org", false)
	addLink(t, store, owner.ID, 0, "before")
	addLink(t, store, other.ID, 0, "other")
	batch := &schema.LinkBatch{AccountID: owner.ID, NewHash: schema.NewHash}
	for i := range 3 * schema.PageSize / 2 {
		link := newLink(0, []int64{0, domain.ID, lost.ID}[i%3], fmt.Sprintf("hash-%d", (i*7)%100))
		if i%4 == 0 {
			link.Hash = ""
		}
		link.URL, link.Active = fmt.Sprintf("https://example.org/%d", i), i%5 > 0
		link.Title, link.Tags = fmt.Sprintf("Nº '%d' 🙂", i), [][]string{nil, {"one"}, {"a_b", "c-d"}}[i%3]
		link.ForwardQuery = i%2 == 0
		if i%8 == 5 {
			link.Behaviour = extension(fmt.Sprint(i))
		}
		if i%7 == 3 { // imported, from long ago
			link.CreatedAt = hour(-i)
		}
		if i%6 > 2 {
			link.ExpiresAt, link.ExpiredURL = hour(i), fmt.Sprintf("https://example.net/%d", i)
		}
		batch.Links = append(batch.Links, link)
	}
	given := slices.Clone(batch.Links)
	createBatch(t, store, batch)
	total := int64(len(given) + 1)
	sameOrdinals(t, store, owner.ID, total)
	for i, want := range given {
		created := batch.Links[i]
		want.AccountID, want.ID, want.Ordinal, want.Version = owner.ID, created.ID, int64(i+2), 1
		if want.UpdatedAt = want.CreatedAt; want.Hash == "" {
			want.Hash = created.Hash
		}
		if created.ID == 0 || !schema.ValidHash(created.Hash) {
			t.Fatalf("created %+v", created)
		}
		testkit.Equal(t, "created link", created, want)
		want.Host = map[int64]string{domain.ID: domain.Host, lost.ID: lost.Host}[want.DomainID]
		if want.DomainID == lost.ID {
			want.Stopped = schema.HostLost
		}
		got, err := schema.FindLink(t.Context(), store, want.DomainID, want.Hash)
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, want)
	}
	testkit.Equal(t, "ordinal of the next link", addLink(t, store, owner.ID, 0, "after").Ordinal, total+1)
	testkit.Equal(t, "ordinal of the other account's next link", addLink(t, store, other.ID, 0, "other-2").Ordinal, 2)
}

func refusesPartsOfBatch(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain, gone := addDomain(t, store, owner.ID, "go.example.org", true),
		addDomain(t, store, owner.ID, "gone.example.org", true)
	testkit.Must(t, store.DeleteDomain(t.Context(), gone.ID))
	mine, taken := addLink(t, store, owner.ID, 0, "mine"), addLink(t, store, other.ID, 0, "taken")
	reserved := addLink(t, store, other.ID, 0, "reserved")
	testkit.Must(t, store.DeleteLink(t.Context(), reserved, hour(1)))
	const conflict, none = schema.CodeConflict, schema.CodeNotFound
	batch := newBatch(owner.ID, "twice", "taken", "one", "twice", "mine", "reserved", "nowhere", "taken", "", "two",
		"twice", "MINE")
	batch.Links[3].URL = "https://example.net/"
	batch.Links[6].DomainID, batch.Links[7].DomainID, batch.Links[10].DomainID = gone.ID, domain.ID, domain.ID
	createBatch(t, store, batch, "", conflict, "", conflict, conflict, conflict, none)
	ordinal := int64(1)
	for i, link := range batch.Links {
		if batch.Errs[i] == nil {
			ordinal++
			testkit.Equal(t, "ordinal", link.Ordinal, ordinal)
		}
	}
	sameOrdinals(t, store, owner.ID, ordinal)
	for _, want := range []schema.Link{mine, taken, batch.Links[0]} {
		got, err := schema.FindLink(t.Context(), store, 0, want.Hash)
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, want)
	}
	createBatch(t, store, newBatch(owner.ID, "mine", "one"), conflict, conflict)
	createBatch(t, store, newBatch(owner.ID))
	sameOrdinals(t, store, owner.ID, ordinal)
}

func drawsHashes(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	addLink(t, store, owner.ID, 0, "taken")
	draws := []string{"taken", "chosen", "free-1", "free-1", "free-2", "free-3"}
	batch := newBatch(owner.ID, "", "chosen", "", "")
	batch.NewHash = func() string {
		next := draws[0]
		draws = draws[1:]
		return next
	}
	createBatch(t, store, batch)
	hashes := map[string]bool{}
	for i, link := range batch.Links {
		hashes[link.Hash] = true
		testkit.Equal(t, "ordinal", link.Ordinal, int64(i+2))
		got, err := schema.FindLink(t.Context(), store, 0, link.Hash)
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, link)
	}
	draws = []string{"taken", "a", "b", "taken", "free-1", "c", "d", "e", "f"}
	batch.Links, batch.Errs = newBatch(0, "", "", "").Links, nil
	createBatch(t, store, batch)
	for i, link := range batch.Links {
		testkit.Equal(t, "ordinal", link.Ordinal, int64(i+6))
		got, err := schema.FindLink(t.Context(), store, 0, link.Hash)
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, link)
	}
	testkit.Equal(t, "hashes", hashes, map[string]bool{"chosen": true, "free-1": true, "free-2": true, "free-3": true})
}

func drawsNoFreeHash(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	addLink(t, store, owner.ID, 0, "taken")
	for _, hashes := range [][]string{{"free", ""}, {"free", "", ""}} {
		batch := newBatch(owner.ID, hashes...)
		draws := 0
		batch.NewHash = func() string { draws++; return "taken" }
		testkit.WantCode(t, store.CreateLinks(t.Context(), batch), schema.CodeInternal)
		if draws > schema.MaxDraws*len(hashes) {
			t.Errorf("%d draws", draws)
		}
	}
	sameOrdinals(t, store, owner.ID, 1)
	addLink(t, store, owner.ID, 0, "free")
}

func remakesBatch(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	ids := map[int64]bool{}
	keys := []schema.LinkKey{{Hash: "down"}, {Hash: "hash"}, {DomainID: domain.ID, Hash: "hash"}}
	for _, key := range keys {
		link := addLink(t, store, owner.ID, key.DomainID, key.Hash)
		ids[link.ID] = true
		testkit.Must(t, store.SetTakenDown(t.Context(), key.DomainID, key.Hash, key.Hash == "down"))
		testkit.Must(t, store.DeleteLink(t.Context(), link, hour(1)))
	}
	batch := newBatch(owner.ID, "hash", "down", "new", "hash")
	batch.Links[3].DomainID = domain.ID
	createBatch(t, store, batch)
	for i, link := range batch.Links {
		if ids[link.ID] || link.Ordinal != int64(i+4) {
			t.Errorf("made anew with ID %d and ordinal %d", link.ID, link.Ordinal)
		}
		got, err := schema.FindLink(t.Context(), store, link.DomainID, link.Hash)
		testkit.Must(t, err)
		if link.Hash == "down" {
			link.Stopped = schema.TakenDown
		}
		got.Host = ""
		testkit.Equal(t, "link", got, link)
	}
	_, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "total", total, 4)
}

func createsBatchOfNobody(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	testkit.WantCode(t, store.CreateLinks(t.Context(), newBatch(owner.ID+1000, "hash", "")), schema.CodeNotFound)
	addLink(t, store, owner.ID, 0, "hash")
}

// createsBatchesAtOnce would find deadlocks of batches that name hashes in different orders.
func createsBatchesAtOnce(t *testing.T, store schema.Database) {
	const calls, each = 12, 20
	accounts := []schema.Account{addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org"),
		addAccount(t, store, "c@example.org")}
	var totals [3]atomic.Int64
	var winners [each]atomic.Int64
	for _, err := range concurrently(calls, func(i int) error {
		batch := newBatch(accounts[i%3].ID, "")
		for n := range each {
			batch.Links = append(batch.Links, newLink(0, 0, fmt.Sprintf("hash-%d", n)))
		}
		if i%2 == 0 {
			slices.Reverse(batch.Links)
		}
		single := newLink(accounts[i%3].ID, 0, fmt.Sprintf("hash-%d", i))
		switch err := store.CreateLink(t.Context(), &single); {
		case err == nil:
			totals[i%3].Add(1)
			winners[i].Add(1)
		case schema.ErrorCode(err) != schema.CodeConflict:
			return err
		}
		if err := store.CreateLinks(t.Context(), batch); err != nil {
			return err
		}
		for k, err := range batch.Errs {
			var n int
			switch _, scanned := fmt.Sscanf(batch.Links[k].Hash, "hash-%d", &n); {
			case err == nil:
				totals[i%3].Add(1)
				if scanned == nil {
					winners[n].Add(1)
				}
			case schema.ErrorCode(err) != schema.CodeConflict:
				return err
			}
		}
		return nil
	}) {
		testkit.Must(t, err)
	}
	for n := range winners {
		testkit.Equal(t, fmt.Sprintf("links with hash-%d", n), winners[n].Load(), 1)
	}
	for i := range accounts {
		sameOrdinals(t, store, accounts[i].ID, totals[i].Load())
	}
}

func showsBatchAtOnce(t *testing.T, store schema.Database) {
	const batches, each = 8, 25
	owner := addAccount(t, store, "a@example.org")
	for _, err := range concurrently(2, func(i int) error {
		if i == 0 {
			for range batches {
				if err := store.CreateLinks(t.Context(), newBatch(owner.ID, make([]string, each)...)); err != nil {
					return err
				}
			}
			return nil
		}
		for total := int64(0); total < batches*each; {
			_, now, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
			if err != nil {
				return err
			}
			if total = now; total%each != 0 {
				return fmt.Errorf("%d links", total)
			}
		}
		return nil
	}) {
		testkit.Must(t, err)
	}
}
