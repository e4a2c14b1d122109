package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

// hostile is text that is an element, or ends an attribute, unless it is escaped.
const hostile = `<img src=x onerror=alert(1)>"'><script>alert(2)</script>`

func TestWhatPeopleWriteIsEscaped(t *testing.T) {
	s := start(t, openSignUp)
	b := s.browser(t)
	b.agent = hostile + " Firefox/145.0"
	address := `<i>"'>` + "@example.org"
	signUp(b, address, "a long password").wantTo(t, "/dashboard")
	b.get("/dashboard/tokens")
	name := hostile
	made := b.post("/dashboard/tokens", "name", name, "newest", "0")
	made.want(t, http.StatusOK, name)
	pages := []answer{made, b.get("/dashboard/tokens"), b.get("/dashboard/account"), b.get("/dashboard"),
		b.get("/dashboard/" + url.PathEscape(hostile)), b.get("/dashboard/none?next=" + url.QueryEscape(hostile)),
		b.post("/dashboard/tokens", "name", hostile+strings.Repeat("x", 64)),
		s.browser(t).signIn(hostile, hostile), signUp(s.browser(t), hostile, "x"),
		s.browser(t).get("/dashboard/sign-in?next=" + url.QueryEscape("/dashboard/"+hostile)),
		s.browser(t).get("/dashboard/sign-in?notice=" + url.QueryEscape(hostile)),
	}
	tokens, err := s.links.Tokens(t.Context(), mustAccount(t, s, address))
	testkit.Must(t, err)
	pages = append(pages, b.post("/dashboard/tokens/revoke", "token", id(tokens[0].ID)), b.follow())
	for i, page := range pages {
		for _, part := range []string{"<img src=x", "<script>alert", "<i>", `"'>`} {
			if strings.Contains(page.body, part) {
				t.Errorf("page %d has %s:\n%s", i, part, page.body)
			}
		}
		for name, values := range page.header {
			if strings.Contains(strings.Join(values, ""), "<") {
				t.Errorf("page %d: %s: %q", i, name, values)
			}
		}
	}
}

func mustAccount(t *testing.T, s *testService, address string) int64 {
	t.Helper()
	account, err := s.links.AccountByEmail(t.Context(), address)
	testkit.Must(t, err)
	return account.ID
}
