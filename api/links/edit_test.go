package links_test

import (
	"testing"
	"time"

	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestEdit(t *testing.T) {
	f := newFixture(t, "https://sho.rt", "bad.example")
	link, err := f.create(t, "https://example.com/", "edited", 0)
	testkit.Must(t, err)
	t.Run("stores tags in order and the time of expiry in whole seconds", func(t *testing.T) {
		at := time.Date(2099, time.March, 1, 1, 2, 3, 999, time.FixedZone("", 3600))
		got, err := f.Edit(t.Context(), link, links.Edit{Tags: &[]string{"b", "a"}, ExpiresAt: &at})
		testkit.Must(t, err)
		testkit.Equal(t, "tags", got.Tags, []string{"a", "b"})
		testkit.Equal(t, "expiry", got.ExpiresAt, at.Truncate(time.Second))
	})
	t.Run("clears optional fields", func(t *testing.T) {
		got, err := f.Edit(t.Context(), link, links.Edit{Title: new(""), Tags: new([]string(nil)),
			ExpiresAt:  new(time.Time{}),
			ExpiredURL: new("")})
		testkit.Must(t, err)
		if got.Title != "" || got.Tags != nil || !got.ExpiresAt.IsZero() || got.ExpiredURL != "" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("an expiry of this second is in the past", func(t *testing.T) {
		_, err := f.Edit(t.Context(), link, links.Edit{ExpiresAt: new(time.Now())})
		testkit.WantError(t, err, schema.CodeInvalid)
	})
	t.Run("names the expired URL in its problem", func(t *testing.T) {
		_, err := f.Edit(t.Context(), link, links.Edit{ExpiredURL: new("ftp://example.com/")})
		invalid, _ := err.(*schema.Error)
		testkit.WantCode(t, err, schema.CodeInvalid)
		testkit.Equal(t, "fields", invalid.Fields, map[string][]string{
			"expired_url": {"The expired URL must begin with http:// or https://."}})
	})
	t.Run("a URL of release 1.0 has {path} literally until it is changed", func(t *testing.T) {
		const literal = "https://example.com/{path}"
		old := schema.Link{AccountID: f.owner, Hash: "literal", URL: literal, Active: true, CreatedAt: time.Now()}
		testkit.Must(t, f.store.CreateLink(t.Context(), &old))
		for _, c := range []struct {
			edit links.Edit
			want bool
		}{
			{links.Edit{Title: new("T"), LongURL: new(literal)}, false},
			{links.Edit{Behaviour: links.Behaviour{PathMode: `"append"`}}, false},
			{links.Edit{LongURL: new(literal + "/b")}, true}, {links.Edit{LongURL: new(literal + "/b")}, true},
			{links.Edit{LongURL: new("https://example.com/")}, false}, {links.Edit{LongURL: new(literal)}, true},
		} {
			got, err := f.Edit(t.Context(), old, c.edit)
			testkit.Must(t, err)
			testkit.Equal(t, "has a pattern", got.HasPattern(), c.want)
			old = got
		}
	})
	t.Run("a deleted link is not found, and its hash can be used again", func(t *testing.T) {
		testkit.Must(t, f.Delete(t.Context(), link, false))
		testkit.WantCode(t, f.Delete(t.Context(), link, false), schema.CodeNotFound)
		_, err := f.Edit(t.Context(), link, links.Edit{Title: new("x")})
		testkit.WantCode(t, err, schema.CodeNotFound)
		_, err = f.OwnedLink(t.Context(), f.owner, "edited", nil)
		testkit.WantCode(t, err, schema.CodeNotFound)
		_, err = f.create(t, "https://example.com/", "edited", 0)
		testkit.Must(t, err)
	})
}
