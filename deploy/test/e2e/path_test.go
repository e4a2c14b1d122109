package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// TestPaths has links with paths behind their names. Two edges cache names for a day, and what is no name for 24
// minutes.
func TestPaths(t *testing.T) {
	t.Parallel()
	s := startSystem(t, trusted, longCaches)
	_, second := s.startAnother(t, "edge")
	owner, clicks := s.owner(), int64(0)
	const name, target = "guide/v1", "https://example.com/manual?v=2#top"
	edit := func(hash, body string) {
		t.Helper()
		owner.Call(t, http.MethodPatch, "/api/v1/links/"+url.PathEscape(hash), body).Want(t, http.StatusOK)
	}
	// leads returns an error unless paths lead to locations on both edges, "" for nowhere. Redirects are clicks.
	leads := func(locations map[string]string, header ...string) error {
		var errs []error
		for path, location := range locations {
			for _, edge := range []string{s.edge, second} {
				a := call(t, http.MethodGet, edge+"/"+path, "", append(header, "User-Agent", desktop)...)
				status := http.StatusNotFound
				if location != "" {
					status = http.StatusFound
				}
				if a.Status == http.StatusFound {
					clicks++
				}
				if a.Status != status || a.Header.Get("Location") != location {
					errs = append(errs, fmt.Errorf("%s is not %d to %q: %v", path, status, location, a))
				}
			}
		}
		return errors.Join(errs...)
	}
	appended := map[string]string{name: target, name + "/": target,
		name + "/a%2Fb/c": "https://example.com/manual/a%2Fb/c?v=2#top"}
	testkit.Must(t, leads(map[string]string{name: "", name + "/": "", name + "/a%2Fb/c": ""}))
	t.Run("a new link has its paths within a second", func(t *testing.T) {
		owner.Link(t, object{"long_url": target, "alias": name, "path_mode": "append"})
		testkit.Succeeds(t, func() error { return leads(appended) })
		testkit.Must(t, leads(map[string]string{name + "//x": "", name + "/../x": "", name + "/%2e%2e": "",
			name + "/%2Fx": "", name + "/%5Cx": "", "guide%2Fv1/x": "", "guide/x": "", "Guide/v1/x": ""}))
	})
	t.Run("so has a new mode", func(t *testing.T) {
		modes := []string{"none", "append"}
		testkit.Follows(t, time.Second, func(try int) func() error {
			edit(name, fmt.Sprintf(`{"path_mode":%q}`, modes[try%2]))
			want := appended
			if try%2 == 0 {
				want = map[string]string{name + "/a%2Fb/c": "", name + "/": target}
			}
			return func() error { return leads(want) }
		})
		edit(name, `{"path_mode":"append"}`)
		testkit.Succeeds(t, func() error { return leads(appended) })
	})
	t.Run("clicks on paths are the link's", func(t *testing.T) { owner.WaitTotal(t, url.PathEscape(name), clicks) })
	t.Run("a link beneath has its path within a second, and the others stay", func(t *testing.T) {
		testkit.Follows(t, time.Second, func(try int) func() error {
			beneath := fmt.Sprintf("%s/x%d", name, try)
			testkit.Must(t, leads(map[string]string{beneath: fmt.Sprintf("https://example.com/manual/x%d?v=2#top", try)}))
			owner.Link(t, object{"long_url": "https://example.com/own", "alias": beneath})
			return func() error { return leads(map[string]string{beneath: "https://example.com/own"}) }
		})
		testkit.Must(t, leads(appended))
		edit(name+"/x0", `{"alias":"elsewhere"}`)
		edit("elsewhere", `{"former_hashes":[]}`)
		testkit.Succeeds(t, func() error {
			return leads(map[string]string{name + "/x0": "https://example.com/manual/x0?v=2#top"})
		})
	})
	t.Run("a pattern has its path", func(t *testing.T) {
		edit(name, `{"long_url":"https://example.com/{path}?q={path}"}`)
		testkit.Succeeds(t, func() error {
			return leads(map[string]string{name: "https://example.com/?q=", name + "/a/b": "https://example.com/a/b?q=a%2Fb"})
		})
		testkit.Must(t, s.answer(t, "/"+name+"+", http.StatusOK, "https://example.com/{path}?q={path}"))
		testkit.Must(t, s.answer(t, "/"+name+"/a/b+", http.StatusOK, "https://example.com/a/b?q=a%2Fb"))
	})
	t.Run("a domain has a mode for its links within a second", func(t *testing.T) {
		const host = "go.example.org"
		id := s.domain(t, s.email, host)
		owner.Link(t, object{"long_url": "https://example.com/own", "alias": "book", "domain_id": id})
		pages := s.signIn(t)
		testkit.Succeeds(t, func() error {
			return leads(map[string]string{"book": "https://example.com/own", "book/x": ""}, "Host", host)
		})
		for mode, location := range map[string]string{"append": "https://example.com/own/x", "none": "",
			"ignore": "https://example.com/own"} {
			a := pages.post(t, fmt.Sprintf("/dashboard/domains/%s/site", id), "path_mode", mode)
			testkit.Must(t, a.IsStatus(http.StatusSeeOther))
			testkit.Succeeds(t, func() error { return leads(map[string]string{"book/x": location}, "Host", host) })
			link := owner.Get(t, "/api/v1/links/book?domain_id="+id.String()).Want(t, http.StatusOK).Body["link"].(object)
			testkit.Equal(t, "path_mode", link["path_mode"], any(mode))
		}
	})
}
