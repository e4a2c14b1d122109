package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// TestNames has a link with an alias of another service, which is renamed. Two edges cache names for a day, and what is
// no name for 24 minutes.
func TestNames(t *testing.T) {
	t.Parallel()
	s := startSystem(t, trusted, longCaches)
	_, second := s.startAnother(t, "edge")
	owner, clicks := s.owner(), int64(0)
	const first, target, changed = "Spring/Sale.1~a", "https://example.com/one", "https://example.com/two"
	owner.Link(t, object{"long_url": target, "alias": first})
	path := func(hash string) string { return "/api/v1/links/" + url.PathEscape(hash) }
	edit := func(hash, body string) {
		t.Helper()
		owner.Call(t, http.MethodPatch, path(hash), body).Want(t, http.StatusOK)
	}
	// leads returns an error unless names lead to a location on both edges, "" for none. Redirects are clicks.
	leads := func(location string, status int, names ...string) error {
		var errs []error
		for _, name := range names {
			for _, edge := range []string{s.edge, second} {
				a := call(t, http.MethodGet, edge+"/"+name, "", "User-Agent", desktop)
				if a.Status == http.StatusFound {
					clicks++
				}
				if a.Status != status || a.Header.Get("Location") != location {
					errs = append(errs, fmt.Errorf("%s is not %d to %q: %v", name, status, location, a))
				}
			}
		}
		return errors.Join(errs...)
	}
	t.Run("the alias leads to the target, as it is", func(t *testing.T) {
		testkit.Must(t, leads(target, http.StatusFound, first, first+"/", "%53pring/Sale.1~a", first+"."))
		testkit.Must(t, leads("", http.StatusNotFound, "spring/sale.1~a", "Spring%2FSale.1~a", "Spring%2fSale.1~a",
			"Spring%252FSale.1~a", "Spring//Sale.1~a", "Spring\\Sale.1~a", "Spring/./Sale.1~a", "Spring", "Sale.1~a",
			"now", "now-2"))
	})
	t.Run("a new name leads there within a second, and the former one goes on", func(t *testing.T) {
		from, to := first, "now"
		testkit.Follows(t, time.Second, func(int) func() error {
			edit(from, fmt.Sprintf(`{"alias":%q}`, to))
			return func() error { return leads(target, http.StatusFound, from, to) }
		})
		edit("now", `{"alias":"now-2"}`)
		testkit.Succeeds(t, func() error { return leads(target, http.StatusFound, first, "now", "now-2") })
	})
	t.Run("a change takes effect on all names within a second", func(t *testing.T) {
		targets := []string{changed, target}
		testkit.Follows(t, time.Second, func(try int) func() error {
			edit(first, fmt.Sprintf(`{"long_url":%q}`, targets[try%2]))
			return func() error { return leads(targets[try%2], http.StatusFound, first, "now", "now-2") }
		})
		edit(first, fmt.Sprintf(`{"long_url":%q}`, target))
		testkit.Succeeds(t, func() error { return leads(target, http.StatusFound, first, "now", "now-2") })
	})
	t.Run("clicks on all names are the link's", func(t *testing.T) {
		owner.WaitTotal(t, "now-2", clicks)
		owner.WaitTotal(t, url.PathEscape(first), clicks)
	})
	t.Run("the preview is about the link", func(t *testing.T) {
		for _, name := range []string{first, "now"} {
			testkit.Must(t, s.answer(t, "/"+name+"+", http.StatusOK, target))
		}
	})
	t.Run("a take-down by any name stops all of them", func(t *testing.T) {
		s.admin(t, "link", "off", first)
		testkit.Succeeds(t, func() error { return leads("", http.StatusGone, first, "now", "now-2") })
		owner.Call(t, http.MethodPatch, path(first), `{"alias":"other"}`).
			WantError(t, http.StatusUnprocessableEntity, "alias")
		s.admin(t, "link", "on", "now")
		testkit.Succeeds(t, func() error { return leads(target, http.StatusFound, first, "now", "now-2") })
	})
	t.Run("a name that is given up leads nowhere, and another account's link later", func(t *testing.T) {
		edit(first, fmt.Sprintf(`{"former_hashes":[%q]}`, first))
		testkit.Succeeds(t, func() error { return leads("", http.StatusNotFound, "now") })
		other, _ := s.another(t, "other")
		other.Alias(t, "now", changed)
		before := clicks
		testkit.Succeeds(t, func() error { return leads(changed, http.StatusFound, "now") })
		clicks = before
	})
	t.Run("the trash stops all names, and gives them back", func(t *testing.T) {
		owner.Call(t, http.MethodDelete, path(first), "").Want(t, http.StatusOK)
		testkit.Succeeds(t, func() error { return leads("", http.StatusGone, first, "now-2") })
		owner.Call(t, http.MethodPost, path(first)+"/restore", "").Want(t, http.StatusOK)
		testkit.Succeeds(t, func() error { return leads(target, http.StatusFound, first, "now-2") })
		owner.WaitTotal(t, "now-2", clicks)
	})
	t.Run("a password page and a card stand under all names", func(t *testing.T) {
		card := s.visit(t, http.MethodGet, "/"+first, "User-Agent", "facebookexternalhit/1.1")
		testkit.Equal(t, "without a card", card.Status, http.StatusFound)
		edit(first, `{"password":"sesame","card":{"title":"Sale of cards"}}`)
		for _, name := range []string{first, "now-2"} {
			testkit.Succeeds(t, func() error { return s.answer(t, "/"+name, http.StatusOK, "password") })
			a := enter(t, s.edge, name, "sesame", "192.0.2.1", "User-Agent", desktop)
			testkit.Equal(t, "answer", fmt.Sprint(a.Status, a.Header.Get("Location")), "303"+target)
			if cookie := a.Header.Get("Set-Cookie"); !strings.Contains(cookie, "path=/"+name) {
				t.Errorf("cookie %q", cookie)
			}
		}
	})
}
