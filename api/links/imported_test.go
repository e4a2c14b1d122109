package links_test

import (
	"testing"
	"time"

	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestCreateKeepsWhatLinksHadElsewhere(t *testing.T) {
	f := newFixture(t, "http://sho.rt")
	create := func(hash string, change func(*links.Request)) (schema.Link, error) {
		req := links.Request{AccountID: f.owner, LongURL: "https://example.com/", CustomAlias: &hash, KeepHash: true}
		if change != nil {
			change(&req)
		}
		return f.Create(t.Context(), req)
	}
	t.Run("any hash, but for reserved words in any letter case", func(t *testing.T) {
		for _, hash := range []string{"a", "aB", "AbC123", "ABC123", "_-Zz0123456789abcdef", "a/b", "a123456789b123456789c",
			"Old.html"} {
			if link, err := create(hash, nil); err != nil || link.Hash != hash {
				t.Errorf("%q: %+v, %v", hash, link, err)
			}
		}
		for _, hash := range []string{"", "a b", "héllo", "a//b", "a/", "api", "API", "Dashboard", "docs/x", "robots.txt"} {
			_, err := create(hash, nil)
			wantInvalid(t, err, "custom_alias")
		}
	})
	t.Run("the time of creation and whether it is switched on", func(t *testing.T) {
		at := time.Date(2019, 5, 4, 3, 2, 1, 999, time.FixedZone("", 3600))
		link, err := create("old", func(req *links.Request) { req.CreatedAt, req.Inactive = at, true })
		testkit.Must(t, err)
		stored, err := schema.FindLink(t.Context(), f.store, 0, "old")
		testkit.Must(t, err)
		for _, got := range []schema.Link{link, stored} {
			if !got.CreatedAt.Equal(at.Truncate(time.Second)) || got.Active {
				t.Errorf("%+v", got)
			}
		}
	})
}

func TestCheckAll(t *testing.T) {
	f := newFixture(t, "http://sho.rt", "evil.example")
	taken, foreign := "taken", int64(999)
	_, err := f.create(t, "https://example.com/", taken, 0)
	testkit.Must(t, err)
	errs, err := f.CheckAll(t.Context(), []links.Request{
		{AccountID: f.owner, LongURL: "https://example.com/"},
		{AccountID: f.owner, LongURL: "ftp://example.com/", Title: "\x00", DomainID: &foreign},
		{AccountID: f.owner, LongURL: "https://evil.example/"},
		{AccountID: f.owner, LongURL: "https://example.com/", CustomAlias: &taken},
	})
	testkit.Must(t, err)
	if len(errs) != 4 || errs[0] != nil || schema.ErrorCode(errs[2]) != schema.CodeUnsafeURL || errs[3] != nil {
		t.Fatalf("%v", errs)
	}
	wantInvalid(t, errs[1], "domain_id", "long_url", "title")
	if _, total, err := f.store.Links(t.Context(), f.owner, schema.LinkFilter{}, 1); err != nil || total != 1 {
		t.Errorf("%d links, %v", total, err)
	}
	f.store.Close()
	if _, err := f.CheckAll(t.Context(), []links.Request{{AccountID: f.owner, LongURL: "https://example.org/"}}); err ==
		nil {
		t.Error("no error of the store")
	}
}
