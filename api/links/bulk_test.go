package links_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestCreateAll(t *testing.T) {
	f := newFixture(t, "https://sho.rt", "bad.example")
	domain := f.addDomain(t, f.owner, "go.example.org", true)
	foreign := f.addDomain(t, f.other, "other.example.org", true)
	f.addDomain(t, f.owner, "later.example.org", false)
	_, err := f.create(t, "https://example.com/", "taken", 0)
	testkit.Must(t, err)
	t.Run("has an outcome for each request, as Create has", func(t *testing.T) {
		reqs := []links.Request{
			{LongURL: "https://example.com/1", CustomAlias: new("twice"), ExpiredURL: new("x")},
			{LongURL: "https://example.com/2", CustomAlias: new("twice"), Title: "Two", Tags: []string{"b", "a"}},
			{LongURL: "https://example.com/3", CustomAlias: new("twice")},
			{LongURL: "https://example.com/4", CustomAlias: new("twice"), DomainID: &domain},
			{LongURL: "https://example.com/5", CustomAlias: new("twice"), DomainID: new(int64(0))},
			{LongURL: "https://example.com/6", CustomAlias: new("taken")},
			{LongURL: "https://example.com/7"},
			{LongURL: "https://bad.example/"},
			{LongURL: "https://example.com/", ExpiredURL: new("https://bad.example/")},
			{LongURL: "https://go.example.org/"},
			{LongURL: "https://later.example.org/"},
			{LongURL: "https://sho.rt/x"},
			{LongURL: "https://example.com/", DomainID: &foreign},
			{LongURL: "https://example.com/", Malformed: map[string][]string{"title": {"It is a number."}}},
			{LongURL: "https://example.com/8"},
		}
		for i := range reqs {
			reqs[i].AccountID = f.owner
		}
		results, err := f.CreateAll(t.Context(), reqs)
		testkit.Must(t, err)
		testkit.Equal(t, "results", len(results), len(reqs))
		var created []string
		for i, want := range []string{"expired_url", "", "custom_alias", "", "custom_alias", "custom_alias", "", "unsafe",
			"unsafe", "long_url", "",
			"long_url", "domain_id", "title", ""} {
			result := results[i]
			switch want {
			case "":
				testkit.Must(t, result.Err)
				created = append(created, result.Link.URL)
				stored, err := schema.FindLink(t.Context(), f.store, result.Link.DomainID, result.Link.Hash)
				testkit.Must(t, err)
				testkit.Equal(t, "link", stored, result.Link)
				testkit.Equal(t, "long URL", stored.URL, reqs[i].LongURL)
			case "unsafe":
				testkit.WantCode(t, result.Err, schema.CodeUnsafeURL)
			default:
				wantInvalid(t, result.Err, want)
			}
		}
		listed, _, err := f.store.Links(t.Context(), f.owner, schema.LinkFilter{}, 1)
		testkit.Must(t, err)
		for i, url := range created {
			testkit.Equal(t, "link in the list", listed[len(created)-1-i].URL, url)
		}
		testkit.Equal(t, "short URL", f.ShortURL(results[3].Link), "https://go.example.org/twice")
	})
	t.Run("creates nothing if no request is valid, or there is none", func(t *testing.T) {
		for _, reqs := range [][]links.Request{nil, {{AccountID: f.owner, LongURL: "x"}}} {
			results, err := f.CreateAll(t.Context(), reqs)
			testkit.Must(t, err)
			testkit.Equal(t, "results", len(results), len(reqs))
		}
	})
}

// TestCreateAllAsksLittle counts the calls to the stores.
func TestCreateAllAsksLittle(t *testing.T) {
	f := newFixture(t, "https://sho.rt")
	domain := f.addDomain(t, f.owner, "go.example.org", true)
	calls := map[string]int{}
	var down atomic.Pointer[string]
	counted := storetest.Faulty(f.store, func(_ context.Context, method string) error {
		if calls[method]++; down.Load() != nil && *down.Load() == method {
			return schema.Errorf(schema.CodeUnavailable, "down")
		}
		return nil
	})
	path := filepath.Join(t.TempDir(), "hosts")
	testkit.Must(t, os.WriteFile(path, nil, 0o600))
	list, err := blocklist.Open(path, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	s := links.New(schema.MustParseBaseURL("https://sho.rt"), counted, counted, list)
	requests := func(prefix string) []links.Request {
		reqs := make([]links.Request, 300)
		for i := range reqs {
			reqs[i] = links.Request{AccountID: f.owner, LongURL: fmt.Sprintf("https://%s%d.example/", prefix, i),
				DomainID: &domain}
		}
		return reqs
	}
	_, err = s.CreateAll(t.Context(), requests("a"))
	testkit.Must(t, err)
	testkit.Equal(t, "calls", calls, map[string]int{"VerifiedHosts": 1, "Domains": 1, "CreateLinks": 1})
	for _, method := range []string{"VerifiedHosts", "Domains", "CreateLinks"} {
		down.Store(&method)
		_, err := s.CreateAll(t.Context(), requests(method))
		testkit.WantCode(t, err, schema.CodeUnavailable)
	}
	_, total, err := f.store.Links(t.Context(), f.owner, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links", total, 300)
}
