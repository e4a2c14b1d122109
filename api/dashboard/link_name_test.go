package dashboard_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestNames(t *testing.T) {
	s := start(t)
	s.addForeign(t) // theirs
	s.addLink(t, "sale", "https://example.org/")
	b := s.signedIn(t)
	names := func() schema.LinkNames {
		t.Helper()
		link, err := schema.FindLink(t.Context(), s.links, 0, "sale")
		testkit.Must(t, err)
		return link.Names()
	}
	t.Run("a link is created with an alias of any service", func(t *testing.T) {
		b.post("/dashboard/links", "long_url", "https://example.org/", "custom_alias", "Promo/2026.1~a").
			want(t, http.StatusSeeOther)
		b.follow().want(t, http.StatusOK, "Your link is ready", "Promo/2026.1~a")
		path := "/dashboard/links/0/" + url.PathEscape("Promo/2026.1~a")
		b.get(path).want(t, http.StatusOK, "sho.rt/ Promo/2026.1~a")
		b.get(path+"/edit").want(t, http.StatusOK, "Edit the link")
		b.get("/dashboard/links?q=promo%2F2026").want(t, http.StatusOK, "Promo/2026.1~a")
		b.get("/dashboard/links/0/Promo/2026.1~a").want(t, http.StatusNotFound)
		for alias, problem := range map[string]string{strings.Repeat("a", 129): "1 to 128 characters",
			"a//b": "1 to 128 characters", "Docs/x": "is reserved", "ab": "at least 3", "theirs": "already in use"} {
			page := b.post("/dashboard/links", "long_url", "https://example.org/", "custom_alias", alias)
			page.want(t, http.StatusUnprocessableEntity, problem)
			if !strings.Contains(page.body, `id="custom_alias-problem"`) {
				t.Errorf("%s: the problem is not at the field", alias)
			}
		}
	})
	t.Run("a link is renamed, and its page says what its former name does", func(t *testing.T) {
		b.get("/dashboard/links/0/sale/edit").want(t, http.StatusOK, "Rename the link", "goes on leading to this link")
		now := "/dashboard/links/0/" + url.PathEscape("Sale/Now")
		b.post("/dashboard/links/0/sale/rename", "alias", "Sale/Now").wantTo(t, now+"/edit")
		b.follow().want(t, http.StatusOK, "sho.rt/sale is sho.rt/Sale/Now now.", "Former names", "Give up sale")
		testkit.Equal(t, "names", names(), schema.LinkNames{Hash: "Sale/Now", Former: []string{"sale"}})
		b.get("/dashboard/links/0/sale").want(t, http.StatusOK, "sho.rt/ Sale/Now") // pages of the old address
		b.post(now+"/rename", "alias", "SALE2").wantTo(t, "/dashboard/links/0/sale2/edit")
		b.post("/dashboard/links/0/sale2/rename", "alias", "sale2").wantTo(t, "/dashboard/links/0/sale2/edit")
		testkit.Equal(t, "names", names(), schema.LinkNames{Hash: "sale2", Former: []string{"sale", "Sale/Now"}})
		b.post("/dashboard/links/0/sale/rename", "alias", "Sale/Now").wantTo(t, now+"/edit")
		testkit.Equal(t, "names", names(), schema.LinkNames{Hash: "Sale/Now", Former: []string{"sale", "sale2"}})
	})
	t.Run("problems are at the field, which keeps its text", func(t *testing.T) {
		for alias, problem := range map[string]string{"theirs": "already in use", "a//b": "1 to 128 characters",
			"api": "is reserved", "": "1 to 128 characters"} {
			page := b.post("/dashboard/links/0/sale/rename", "alias", alias)
			page.want(t, http.StatusUnprocessableEntity, problem)
			if !strings.Contains(page.body, `id="alias-problem"`) ||
				alias != "" && !strings.Contains(page.body, `value="`+alias+`"`) {
				t.Errorf("%q is not at the field:\n%s", alias, page.body)
			}
		}
	})
	t.Run("a former name is given up", func(t *testing.T) {
		b.post("/dashboard/links/0/sale/rename", "give_up", "sale2").want(t, http.StatusSeeOther)
		b.follow().want(t, http.StatusOK, "sho.rt/sale2 leads nowhere now.")
		testkit.Equal(t, "names", names(), schema.LinkNames{Hash: "Sale/Now", Former: []string{"sale"}})
		b.get("/dashboard/links/0/sale2").want(t, http.StatusNotFound)
	})
	t.Run("an alias is checked while it is typed", func(t *testing.T) {
		id := strconv.FormatInt(s.addDomain(t, "go.example.org", true).ID, 10)
		for query, want := range map[string]string{
			"alias=free": "", "alias=Free": "", "alias=ab": "at least 3", "alias=theirs": "in use", "alias=sale": "in use",
			"alias=sale&hash=Sale%2FNow": "", "alias=Sale%2FNow&hash=sale": "", "alias=api.x": "reserved",
			"alias=a%2F%2Fb": "1 to 128", "alias=ab&domain_id=" + id: "", "alias=theirs&domain_id=" + id: "",
			"alias=++free++": "", "alias=": "1 to 128", "alias=theirs&domain_id=x": "in use",
		} {
			a := b.get("/dashboard/alias.txt?" + query)
			if a.status != http.StatusOK || (a.body == "") != (want == "") || !strings.Contains(a.body, want) {
				t.Errorf("%s: %d, %q, want %q", query, a.status, a.body, want)
			}
		}
	})
}
