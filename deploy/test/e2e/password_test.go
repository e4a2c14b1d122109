package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

// enter sends the form of the page that asks for a link's password, from a client's address.
func enter(t *testing.T, edge, hash, password, client string, header ...string) answer {
	t.Helper()
	form := url.Values{"password": {password}}.Encode()
	return call(t, http.MethodPost, edge+"/"+hash, form,
		append(header, "X-Forwarded-For", client, "Content-Type", "application/x-www-form-urlencoded")...)
}

// TestLinkPassword has links that ask for a password.
func TestLinkPassword(t *testing.T) {
	t.Parallel()
	s := startSystem(t, trusted, longCaches)
	_, other := s.startAnother(t, "edge")
	const secret, target = "öpen & sesame+", "https://example.com/"
	owner, clicks, whole := s.owner(), int64(0), t // programs outlive subtests
	for _, hash := range []string{"secret", "another"} {
		owner.Link(t, object{"long_url": target + hash, "custom_alias": hash, "password": secret, "forward_query": true})
	}
	grant := ""
	t.Run("the right password leads to the target, and that is the click", func(t *testing.T) {
		a := enter(t, s.edge, "secret?a=b", secret, "192.0.2.1", "User-Agent", desktop)
		testkit.Equal(t, "answer", fmt.Sprint(a.Status, a.Header.Get("Location")), "303"+target+"secret?a=b")
		clicks++
		grant, _, _ = strings.Cut(a.Header.Get("Set-Cookie"), ";")
		owner.WaitTotal(t, "secret", clicks)
	})
	follows := func(edge string, hash string) error {
		a := call(t, http.MethodGet, edge+"/"+hash, "", "Cookie", grant, "User-Agent", desktop)
		if a.Status != http.StatusFound {
			return fmt.Errorf("not redirected: %v", a)
		}
		clicks++
		return nil
	}
	t.Run("the grant works on every edge, after kill -9, and not for another link", func(t *testing.T) {
		testkit.Must(t, follows(s.edge, "secret"))
		testkit.Must(t, follows(other, "secret"))
		edge := s.all("edge")[0]
		edge.kill(whole)
		edge.start(whole)
		testkit.Must(t, follows(s.edge, "secret"))
		testkit.Must(t, s.visit(t, http.MethodGet, "/another", "Cookie", grant).IsStatus(http.StatusOK)) // is asked
		owner.WaitTotal(t, "secret", clicks)
	})
	t.Run("an api is killed", func(t *testing.T) {
		api := s.all("api")[0]
		api.kill(whole)
		if len(s.programs) > 1 {
			testkit.Must(t, enter(t, s.edge, "secret", secret, "192.0.2.3").IsStatus(http.StatusServiceUnavailable))
			testkit.Must(t, follows(s.edge, "secret"))
		}
		api.start(whole)
		testkit.Equal(t, "status", enter(t, s.edge, "another", secret, "192.0.2.3").Status, http.StatusSeeOther)
	})
}
