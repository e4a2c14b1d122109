package redirect_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// rightPassword takes every password for right.
func rightPassword(context.Context, schema.PasswordAttempt) (schema.PasswordVerdict, error) {
	return schema.PasswordVerdict{Right: true, Version: 1}, nil
}

// forms are all ways of asking for a link.
var forms = []struct {
	name, method, suffix string
	fields               []string
}{
	{"a visitor", "GET", "", []string{"User-Agent", firefox}},
	{"a visitor of a typed path", "GET", "/.", []string{"User-Agent", firefox}},
	{"HEAD", "HEAD", "", []string{"User-Agent", firefox}},
	{"a prefetch", "GET", "", []string{"User-Agent", firefox, "Sec-Purpose", "prefetch"}},
	{"a crawler", "GET", "", []string{"User-Agent", crawler}},
	{"HEAD of a crawler", "HEAD", "", []string{"User-Agent", crawler}},
	{"a program that draws previews", "GET", "", []string{"User-Agent", discord}},
	{"no agent", "GET", "", []string{"User-Agent", ""}},
	{"the page about the link", "GET", "+", []string{"User-Agent", firefox}},
	{"HEAD of the page about the link", "HEAD", "+", []string{"User-Agent", firefox}},
	{"the page about the link, for a crawler", "GET", "+", []string{"User-Agent", crawler}},
	{"a password", "POST", "", []string{"User-Agent", firefox}},
}

// kinds returns behaviours of links that lead to a host.
func kinds(host string) map[string]schema.Behaviour {
	url := "https://" + host + "/"
	card := &schema.Card{Title: "Card"}
	desktop := []schema.Rule{{Name: "desktop", If: schema.Conditions{Device: []string{schema.Desktop}}, URL: url}}
	return map[string]schema.Behaviour{
		"plain": {}, "card": {Card: card}, "password": {Password: 1}, "rules": {Rules: desktop},
		"variants": {Variants: []schema.Variant{{Name: "a", URL: url, Weight: 50}, {Name: "b", URL: url, Weight: 50}}},
		"all":      {Card: card, Password: 1, Rules: desktop},
	}
}

// Links of every kind that have ended show their targets to nobody, and those that are used up answer as those that
// have expired.
func TestEndedLinks(t *testing.T) {
	const target, unsafe = "target.example", "unsafe.example"
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, func(e *edge) { e.check = rightPassword })
		addr := e.serve(t, loops)
		answer := func(hash string, form int) string {
			f := forms[form]
			body := map[string]string{http.MethodPost: "password=x"}[f.method]
			resp, text := sendBody(t, addr, f.method, "http://sho.rt/"+hash+f.suffix, body, f.fields...)
			if said := fmt.Sprint(resp.Header, text); strings.Contains(said, target) || strings.Contains(said, unsafe) {
				t.Errorf("%s of %s: %d %s", f.name, hash, resp.StatusCode, said)
			}
			_, title, _ := strings.Cut(text, "<title>")
			title, _, _ = strings.Cut(title, "</title>")
			return fmt.Sprint(resp.StatusCode, resp.Header.Get("Location"), title)
		}
		create := func(hash, host string, x schema.Behaviour, change func(*schema.Link)) string {
			x.Share(nil)
			link := schema.Link{Hash: hash, URL: "https://" + host, Title: "T"}
			if !x.IsZero() {
				link.Behaviour = &x
			}
			change(&link)
			e.create(t, link)
			return hash
		}
		unchanged := func(*schema.Link) {}
		for kind, x := range kinds(target) {
			limited := x
			limited.MaxClicks = 1
			for n, expiredURL := range []string{"", "https://late.example/"} {
				expired := create(fmt.Sprint(kind, n, "expired"), target, x, func(l *schema.Link) {
					l.ExpiresAt, l.ExpiredURL = time.Now().Add(-time.Hour), expiredURL
				})
				used := create(fmt.Sprint(kind, n, "used"), target, limited, func(l *schema.Link) { l.ExpiredURL = expiredURL })
				e.useUp(t, used)
				for form, f := range forms {
					testkit.Equal(t, f.name+" of "+used, answer(used, form), answer(expired, form))
				}
			}
			off := create(kind+"-off", target, limited, unchanged)
			storetest.SetActive(t, e.store, 0, off, false)
			down := create(kind+"-down", target, limited, unchanged)
			testkit.Must(t, e.store.SetTakenDown(t.Context(), 0, down, true))
			blocked := kinds(unsafe)[kind]
			blocked.MaxClicks = 1
			for _, hash := range []string{off, down, create(kind+"-blocked", unsafe, blocked, unchanged)} {
				for form, f := range forms {
					got := answer(hash, form)
					if !strings.HasPrefix(got, "410") && !(f.method == http.MethodPost && strings.HasPrefix(got, "405")) {
						t.Errorf("%s of %s: %s", f.name, hash, got)
					}
				}
			}
		}
	})
}

// useUp spends the clicks of a link on another edge.
func (e *edge) useUp(t *testing.T, hash string) {
	t.Helper()
	link, err := schema.FindLink(t.Context(), e.store, 0, hash)
	testkit.Must(t, err)
	holder := schema.Incarnation{byte(link.ID), 1}
	testkit.Must(t, e.store.AddLeaseHolder(t.Context(), holder))
	lease, err := e.store.TakeLease(t.Context(), holder, schema.LimitLease{LinkID: link.ID, Call: 1, Granted: -1})
	testkit.Must(t, err)
	testkit.Must(t, e.store.EndLeases(t.Context(), holder, map[int64]int64{link.ID: lease.Granted}))
}

// While clicks are left, everyone gets what the link has for them, and nothing but visits spends clicks.
func TestLimitedLinksBeforeTheirEnd(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, func(e *edge) { e.check = rightPassword })
		addr := e.serve(t, loops)
		e.extend(t, "one", schema.Behaviour{MaxClicks: 1, Card: &schema.Card{Title: "Card"}})
		for _, form := range forms[2:11] {
			if form.name == "no agent" {
				continue
			}
			resp, _ := send(t, addr, form.method, "http://sho.rt/one"+form.suffix, form.fields...)
			if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusFound {
				t.Errorf("%s: %d", form.name, resp.StatusCode)
			}
		}
		resp, _ := send(t, addr, "GET", "http://sho.rt/one", "User-Agent", firefox)
		testkit.Equal(t, "status of the visitor", resp.StatusCode, http.StatusFound)
		for _, form := range forms[:11] {
			resp, body := send(t, addr, form.method, "http://sho.rt/one"+form.suffix, form.fields...)
			testkit.Equal(t, form.name, resp.StatusCode, http.StatusGone)
			if strings.Contains(body, "example.com") {
				t.Errorf("%s: %s", form.name, body)
			}
		}
	})
}
