package resttest

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

// testAliases tests aliases of any service: their rules, and their percent-encoded form in paths.
func testAliases(t *testing.T, s System) {
	owner := s.account(t)
	id, host := s.domain(t, owner)
	alias := "Promo-" + label() + "/2026/v1.2~b.html"
	made := owner.Link(t, Object{"long_url": "https://example.com/", "alias": alias})
	createdLink.Check(t, made)

	t.Run("hash equals the alias, and short_url ends with it", func(t *testing.T) {
		testkit.Equal(t, "link", fmt.Sprint(made["hash"], " ", made["short_url"]), alias+" "+s.Short+"/"+alias)
		both := owner.Link(t, Object{"long_url": "https://example.com/", "alias": alias, "domain_id": id})
		testkit.Equal(t, "short_url", both["short_url"], any(s.custom(host, alias)))
	})
	t.Run("it stands percent-encoded in every path", func(t *testing.T) {
		path := "/api/v1/links/" + url.PathEscape(alias)
		testkit.Equal(t, "hash", owner.Get(t, "/api/v1/stats/"+url.PathEscape(alias)).Want(t, http.StatusOK).Body["hash"],
			any(alias))
		testkit.Equal(t, "hash", owner.Get(t, path).Want(t, http.StatusOK).Body["link"].(Object)["hash"], any(alias))
		testkit.Equal(t, "hash", owner.Get(t, path+"/report").Want(t, http.StatusOK).Body["hash"], any(alias))
		testkit.Equal(t, "QR code", owner.Get(t, path+"/qr").Status, http.StatusOK)
		owner.Call(t, http.MethodPatch, path, `{"title":"T"}`).Want(t, http.StatusOK)
		owner.Call(t, http.MethodDelete, path, "").Want(t, http.StatusOK)
		owner.Call(t, http.MethodPost, path+"/restore?domain_id=0", "").Want(t, http.StatusOK)
		items, _ := owner.Page(t, "?q="+url.QueryEscape(s.Short+"/"+alias))
		testkit.Equal(t, "links found by the short URL", len(items), 1)
	})
	t.Run("it stands as it is in bodies", func(t *testing.T) {
		named := fmt.Sprintf(`{"links":[{"hash":%q}],"add_tags":["named"]}`, alias)
		changed := owner.Call(t, http.MethodPost, "/api/v1/links/bulk/edit", named).Want(t, http.StatusOK).Body
		testkit.Equal(t, "changed", Number(t, changed, "changed"), int64(1))
		share, _ := owner.Share(t, fmt.Sprintf(`{"hash":%q}`, alias))
		testkit.Equal(t, "share", owner.Get(t, share).Body["share"].(Object)["hash"], any(alias))
		hook := hookPath(t, owner.Caller, goodHook[:len(goodHook)-1]+fmt.Sprintf(`,"hash":%q}`, alias))
		testkit.Equal(t, "webhook", owner.Get(t, hook).Body["webhook"].(Object)["hash"], any(alias))
	})
	t.Run("bulk takes it", func(t *testing.T) {
		a := owner.Call(t, http.MethodPost, "/api/v1/links/bulk", `{"links":[{"long_url":"https://example.com/","alias":"`+
			alias+`-2"},{"long_url":"https://example.com/","alias":"a//b"}]}`).Want(t, http.StatusOK).Body["results"].([]any)
		testkit.Equal(t, "hash", a[0].(Object)["hash"], any(alias+"-2"))
		if _, ok := a[1].(Object)["errors"].(Object)["links.1.alias"]; !ok {
			t.Errorf("%v", a[1])
		}
	})
	t.Run("invalid ones", func(t *testing.T) {
		for _, invalid := range []any{"ab", "/abc", "abc/", ".abc", "abc.", "a//b", "a/./b", "a/../b", "a\\b", "a%2Fb", "a b",
			"docs", "Docs/x", "robots.txt", "API.x", "ä/b", strings.Repeat("x", 129), alias, 7, []any{}} {
			owner.Shorten(t, Object{"long_url": "https://example.com/", "alias": invalid}).
				WantError(t, http.StatusUnprocessableEntity, "alias")
		}
		owner.Shorten(t, Object{"long_url": "https://example.com/", "alias": label(), "custom_alias": label()}).
			WantError(t, http.StatusUnprocessableEntity, "alias")
		owner.Shorten(t, Object{"long_url": "https://example.com/", "custom_alias": "a/" + label()}).
			WantError(t, http.StatusUnprocessableEntity, "custom_alias")
	})
	t.Run("one that is not given", func(t *testing.T) {
		for _, none := range []any{nil, ""} {
			owner.Link(t, Object{"long_url": "https://example.com/", "alias": none, "custom_alias": label()})
		}
	})
}

// testRenames tests that a link keeps its former hashes, which name it everywhere, until it gives them up.
func testRenames(t *testing.T, s System) {
	owner, other, name := s.account(t), s.account(t), label()
	owner.Alias(t, name, "https://example.com/")
	now := name + "/Now.1"
	t.Run("the link has its new name, and is found by both", func(t *testing.T) {
		a := owner.patch(t, name, fmt.Sprintf(`{"alias":%q,"title":"T"}`, now)).Want(t, http.StatusOK)
		renamed := a.Body["link"].(Object)
		want := fmt.Sprint(now, " [", name, "] ", s.Short, "/", now)
		testkit.Equal(t, "names",
			fmt.Sprint(renamed["hash"], " ", renamed["former_hashes"], " ", renamed["short_url"]), want)
		testkit.Equal(t, "names", owner.names(t, name), want)
		testkit.Equal(t, "names", owner.names(t, now), want)
	})
	t.Run("answers to the former hash are about the link under its name", func(t *testing.T) {
		for _, hash := range []string{name, now} {
			stats := owner.Get(t, "/api/v1/stats/"+url.PathEscape(hash)).Want(t, http.StatusOK).Body
			testkit.Equal(t, "stats", fmt.Sprint(stats["hash"], stats["short_url"]), now+s.Short+"/"+now)
			testkit.Equal(t, "report", owner.Get(t, linkPath(hash)+"/report").Want(t, http.StatusOK).Body["hash"], any(now))
			bulk := owner.Call(t, http.MethodPost, "/api/v1/links/bulk/edit", fmt.Sprintf(
				`{"links":[{"hash":%q}],"set":{"title":%q}}`, hash, hash)).Want(t, http.StatusOK).Body
			testkit.Equal(t, "result", bulk["results"].([]any)[0].(Object)["hash"], any(now))
			share, _ := owner.Share(t, fmt.Sprintf(`{"hash":%q}`, hash))
			testkit.Equal(t, "share", owner.Get(t, share).Body["share"].(Object)["hash"], any(now))
		}
		items, _ := owner.Page(t, "")
		testkit.Equal(t, "links", len(items), 1)
		testkit.Equal(t, "hash in the list", items[0]["hash"], any(now))
		both := fmt.Sprintf(`{"links":[{"hash":%q},{"hash":%q}],"set":{"title":"x"}}`, name, now)
		bulk := owner.Call(t, http.MethodPost, "/api/v1/links/bulk/edit", both).Want(t, http.StatusOK).Body
		testkit.Equal(t, "failed", Number(t, bulk, "failed"), int64(1)) // it is named twice
	})
	t.Run("the former hash belongs to nobody else", func(t *testing.T) {
		for _, c := range []Caller{owner.Caller, other.Caller} {
			c.Shorten(t, Object{"long_url": "https://example.com/", "custom_alias": name}).
				WantError(t, http.StatusUnprocessableEntity, "custom_alias")
		}
		their := label()
		other.Alias(t, their, "https://example.com/")
		other.Call(t, http.MethodPatch, linkPath(their), fmt.Sprintf(`{"alias":%q}`, name)).
			WantError(t, http.StatusUnprocessableEntity, "alias")
		owner.patch(t, now, fmt.Sprintf(`{"alias":%q}`, their)).WantError(t, http.StatusUnprocessableEntity, "alias")
	})
}

// testFormerHashes tests which former hashes a link keeps.
func testFormerHashes(t *testing.T, s System) {
	owner, other, name := s.account(t), s.account(t), label()
	owner.Alias(t, name, "https://example.com/")
	now := name + "/Now.1"
	owner.patch(t, name, fmt.Sprintf(`{"alias":%q}`, now)).Want(t, http.StatusOK)
	t.Run("If-Match is compared", func(t *testing.T) {
		tag := owner.Get(t, linkPath(name)).Header.Get("ETag")
		owner.patch(t, now, fmt.Sprintf(`{"alias":"%s-2"}`, now), "If-Match", tag).Want(t, http.StatusOK)
		owner.patch(t, now, fmt.Sprintf(`{"alias":"%s-3"}`, now), "If-Match", tag).Want(t, http.StatusPreconditionFailed)
		owner.patch(t, now, fmt.Sprintf(`{"alias":%q}`, name)).Want(t, http.StatusOK)
		testkit.Equal(t, "names", owner.names(t, now), fmt.Sprint(name, " [", now, " ", now, "-2] ", s.Short, "/", name))
	})
	t.Run("a part of the former hashes is kept", func(t *testing.T) {
		owner.patch(t, name, `{"former_hashes":["unknown"]}`).WantError(t, http.StatusUnprocessableEntity, "former_hashes")
		for _, invalid := range []string{"null", `"x"`, `[null]`, `[7]`} {
			owner.patch(t, name, `{"former_hashes":`+invalid+`}`).WantError(t, http.StatusUnprocessableEntity, "former_hashes")
		}
		owner.patch(t, name, fmt.Sprintf(`{"former_hashes":["%s-2"]}`, now)).Want(t, http.StatusOK)
		testkit.Equal(t, "names", owner.names(t, name), fmt.Sprint(name, " [", now, "-2] ", s.Short, "/", name))
		owner.Get(t, linkPath(now)).WantError(t, http.StatusNotFound)
		other.Link(t, Object{"long_url": "https://example.com/", "alias": now})
	})
	t.Run("there are at most ten", func(t *testing.T) {
		for n := range 9 {
			owner.patch(t, name, fmt.Sprintf(`{"alias":"%s-n%d"}`, name, n)).Want(t, http.StatusOK)
		}
		owner.patch(t, name, fmt.Sprintf(`{"alias":"%s-n9"}`, name)).WantError(t, http.StatusUnprocessableEntity, "alias")
		owner.patch(t, name, fmt.Sprintf(`{"alias":%q}`, name)).Want(t, http.StatusOK) // a former one
		owner.patch(t, name, fmt.Sprintf(`{"alias":"%s-n9","former_hashes":[]}`, name)).Want(t, http.StatusOK)
		testkit.Equal(t, "names", owner.names(t, name), fmt.Sprint(name, "-n9 [", name, "] ", s.Short, "/", name, "-n9"))
	})
	t.Run("invalid aliases", func(t *testing.T) {
		for _, invalid := range []string{`""`, "null", "7", `"ab"`, `"a//b"`, `"docs/x"`, `"/a"`} {
			owner.patch(t, name, `{"alias":`+invalid+`}`).WantError(t, http.StatusUnprocessableEntity, "alias")
		}
		owner.Call(t, http.MethodPost, "/api/v1/links/bulk/edit", fmt.Sprintf(
			`{"links":[{"hash":%q}],"set":{"alias":"%s-x"}}`, name, name)).
			WantError(t, http.StatusUnprocessableEntity, "set.alias")
	})
	t.Run("the trash has all names", func(t *testing.T) {
		owner.Call(t, http.MethodDelete, linkPath(name), "").Want(t, http.StatusOK)
		owner.Get(t, linkPath(name)).WantError(t, http.StatusNotFound)
		for _, hash := range []string{name, name + "-n9"} {
			other.Shorten(t, Object{"long_url": "https://example.com/", "alias": hash}).
				WantError(t, http.StatusUnprocessableEntity, "alias")
		}
		owner.Call(t, http.MethodPost, linkPath(name)+"/restore", "").Want(t, http.StatusOK)
		testkit.Equal(t, "names", owner.names(t, name), fmt.Sprint(name, "-n9 [", name, "] ", s.Short, "/", name, "-n9"))
	})
}

// linkPath returns the path of a link with a hash.
func linkPath(hash string) string { return "/api/v1/links/" + url.PathEscape(hash) }

// patch edits a link.
func (c Caller) patch(t *testing.T, hash, body string, header ...string) Answer {
	t.Helper()
	return c.Call(t, http.MethodPatch, linkPath(hash), body, header...)
}

// names returns the names of a link and its short URL.
func (c Caller) names(t *testing.T, hash string) string {
	t.Helper()
	link := c.link(t, url.PathEscape(hash))
	return fmt.Sprint(link["hash"], " ", link["former_hashes"], " ", link["short_url"])
}

// testPaths tests, with targets of requests as they are, that a path is decoded once, and an escaped slash separates no
// segments.
func testPaths(t *testing.T, s System) {
	owner, name := s.account(t), label()
	for _, alias := range []string{name + "/b", name + "/..b"} {
		owner.Link(t, Object{"long_url": "https://example.com/", "alias": alias})
	}
	for target, status := range map[string]int{
		"%2Fb": 200, "%2fb": 200, "%2F%62": 200, "%2Fb/": 200, "%2F..b": 200, "%2F%2e%2Eb": 200,
		"/b": 404, "//b": 404, "%252Fb": 404, "%252fb": 404, "%2F%2Fb": 404, "%2F/b": 404, "%2Fb%2F": 404, "\\b": 404,
		"%5Cb": 404, "%2F.%2Fb": 404, "%2F..%2Fb": 404, "/%2Fb": 404, "%2Fc%2F..%2Fb": 404, "%2Fb%00": 404, "%2Fb%": 404,
		"%2Fb%zz": 404, "%2FB": 404, "%2F%D0%B1": 404, "%2Fb/../b": 404, "%2F%2E%2E%2Fb": 404,
	} {
		for _, of := range []string{"/api/v1/stats/", "/api/v1/links/"} {
			testkit.Equal(t, of+"{name}"+target, raw(t, owner.Caller, of+name+target), status)
		}
	}
	for _, target := range []string{"/api/v1/./stats/", "/api/v1/x/../stats/", "/api/v1//stats/", "/api/v1/stats/./",
		"/api/v1/stats//", "/api/v1\\stats/", "/api/v1%2Fstats/"} {
		testkit.Equal(t, target, raw(t, owner.Caller, target+name+"%2Fb"), http.StatusNotFound)
	}
}

// raw sends a GET whose target no client has changed, and returns the status.
func raw(t *testing.T, c Caller, target string) int {
	t.Helper()
	host := strings.TrimPrefix(c.API, "http://")
	conn, err := net.Dial("tcp", host)
	testkit.Must(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n",
		target, host, c.Token)
	testkit.Must(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	testkit.Must(t, err)
	res.Body.Close()
	return res.StatusCode
}
