package redirect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// TestPassword has a link that asks for a password, whose right ones are its version's.
func TestPassword(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		const (
			version = int64(1) << 40
			page    = `<input id="password"`
		)
		var mu sync.Mutex // guards asked and away, which the server uses, too
		var asked []schema.PasswordAttempt
		var away error
		setAway := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			away = err
		}
		attempts := func() []schema.PasswordAttempt {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(asked)
		}
		e := newEdge(t, func(e *edge) {
			testkit.Must(t, e.cfg.TrustedProxies.Set("127.0.0.0/8"))
			e.check = func(_ context.Context, a schema.PasswordAttempt) (schema.PasswordVerdict, error) {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, a)
				wait := map[bool]int{true: 30}[a.Password == "again"]
				return schema.PasswordVerdict{Right: a.Password == "öpen & sesame", Version: version, Wait: wait}, away
			}
		})
		extension := &schema.Behaviour{Password: version, Card: &schema.Card{Title: "A card"},
			Rules: []schema.Rule{{Name: "de", URL: "https://example.com/de", If: schema.Conditions{Language: []string{"de"}}}}}
		link := e.create(t, schema.Link{Hash: "secret", URL: "https://example.com/", ForwardQuery: true,
			Behaviour: extension})
		e.create(t, schema.Link{Hash: "other", URL: "https://example.com/", Behaviour: extension})
		e.create(t, schema.Link{Hash: "unsafe", URL: "https://unsafe.example/",
			Behaviour: &schema.Behaviour{Password: version}})
		e.create(t, schema.Link{Hash: "late", URL: "https://example.com/", Behaviour: extension,
			ExpiresAt:  time.Now().Add(-time.Hour),
			ExpiredURL: "https://example.com/over"})
		e.link(t, 0, "open", "https://example.com/")
		addr := e.serve(t, loops)
		clicks := func(t *testing.T, want int) []schema.Click {
			t.Helper()
			got := e.clicks(t)
			testkit.Equal(t, "clicks", len(got), want)
			return got
		}
		wantPage := func(t *testing.T, resp *http.Response, body, text string) {
			t.Helper()
			if resp.StatusCode != 200 || !strings.Contains(body, page) || !strings.Contains(body, text) ||
				resp.Header.Get("X-Robots-Tag") != "noindex" || resp.Header.Get("Cache-Control") != "no-store" ||
				strings.Contains(resp.Header.Get("Content-Security-Policy"), "form-action") ||
				strings.Contains(body, "example.com") {
				t.Errorf("status %d, header %v, body %q", resp.StatusCode, resp.Header, body)
			}
		}
		t.Run("visitors and crawlers and prefetches get the form and are not counted", func(t *testing.T) {
			for range 2 {
				for _, fields := range [][]string{{}, {"Accept-Language", "de"}, {"Sec-Purpose", "prefetch"},
					{"User-Agent", "Twitterbot/1.0"},
					{"Cookie", "linkstream_grant=x"}} {
					resp, body := send(t, addr, "GET", "http://sho.rt/secret?a=b", fields...)
					wantPage(t, resp, body, "")
				}
				resp, body := send(t, addr, "HEAD", "http://sho.rt/secret")
				testkit.Equal(t, "HEAD", fmt.Sprint(resp.StatusCode, body), "200")
			}
			clicks(t, 0)
		})
		t.Run("blocked and expired come first and the preview does not show the target", func(t *testing.T) {
			resp, _ := send(t, addr, "GET", "http://sho.rt/unsafe")
			testkit.Equal(t, "blocked", resp.StatusCode, 410)
			resp, _ = sendBody(t, addr, "POST", "http://sho.rt/unsafe", "password=%C3%B6pen+%26+sesame")
			testkit.Equal(t, "blocked", resp.StatusCode, 410)
			resp, _ = send(t, addr, "GET", "http://sho.rt/late")
			testkit.Equal(t, "expired", resp.Header.Get("Location"), "https://example.com/over")
			clicks(t, 1)
			resp, body := send(t, addr, "GET", "http://sho.rt/secret+")
			if resp.StatusCode != 200 || strings.Contains(body, "example.com") || strings.Contains(body, page) {
				t.Error(resp.StatusCode, body)
			}
			testkit.Equal(t, "attempts", len(attempts()), 0)
		})
		t.Run("wrong passwords get the form again and too many 429 and an outage 503", func(t *testing.T) {
			resp, body := sendBody(t, addr, "POST", "http://sho.rt/secret", "password=nonsense", "X-Forwarded-For", "192.0.2.7",
				"Accept-Language", "de")
			wantPage(t, resp, body, "Dieses Passwort ist falsch.")
			testkit.Equal(t, "attempt", attempts()[0],
				schema.PasswordAttempt{LinkID: link.ID, Client: netip.MustParseAddr("192.0.2.7"), Password: "nonsense"})
			resp, body = sendBody(t, addr, "POST", "http://sho.rt/secret", "password=again")
			if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "30" || !strings.Contains(body, page) {
				t.Error(resp, body)
			}
			setAway(schema.Errorf(schema.CodeNotFound, "no api"))
			defer setAway(nil)
			resp, _ = sendBody(t, addr, "POST", "http://sho.rt/secret", "password=x")
			if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
				t.Error(resp)
			}
			clicks(t, 0)
		})
		var cookie string
		t.Run("the right password leads to the target and is the click", func(t *testing.T) {
			resp, _ := sendBody(t, addr, "POST", "http://sho.rt/secret?a=b", "password=%C3%B6pen+%26+sesame", "Referer",
				"http://sho.rt/secret",
				"Accept-Language", "de")
			testkit.Equal(t, "answer", fmt.Sprint(resp.StatusCode, resp.Header.Get("Location")), "303https://example.com/de?a=b")
			click := clicks(t, 1)[0]
			testkit.Equal(t, "click", fmt.Sprint(click.LinkID, string(click.Route), string(click.Referrer)),
				fmt.Sprint(link.ID, "de"))
			given := resp.Cookies()[0]
			if given.MaxAge != 600 || !given.HttpOnly || given.Path != "/secret" || given.SameSite != http.SameSiteLaxMode {
				t.Errorf("%+v", given)
			}
			cookie = given.Name + "=" + given.Value
		})
		t.Run("a grant is for this link and this password only", func(t *testing.T) {
			for range 2 {
				resp, _ := send(t, addr, "GET", "http://sho.rt/secret", "Cookie", cookie)
				testkit.Equal(t, "Location", resp.Header.Get("Location"), "https://example.com/")
			}
			resp, _ := send(t, addr, "HEAD", "http://sho.rt/secret", "Cookie", cookie)
			testkit.Equal(t, "status of HEAD", resp.StatusCode, 302)
			clicks(t, 2)
			resp, body := send(t, addr, "GET", "http://sho.rt/other", "Cookie", cookie)
			wantPage(t, resp, body, "")
			resp, body = send(t, addr, "GET", "http://sho.rt/secret", "Cookie",
				strings.Replace(cookie, cookie[len(cookie)-9:len(cookie)-1], "AAAAAAAA", 1))
			wantPage(t, resp, body, "")
			changed := *extension
			changed.Password++
			testkit.Must(t, e.store.UpdateLink(t.Context(), &link, schema.LinkEdit{Behaviour: &changed}, time.Now()))
			e.resolver.Drop(schema.Change{Hash: "secret"})
			resp, body = send(t, addr, "GET", "http://sho.rt/secret", "Cookie", cookie)
			wantPage(t, resp, body, "")
			clicks(t, 0)
		})
		t.Run("other links take no POST", func(t *testing.T) {
			for _, path := range []string{"/open", "/nothing", "/", "/secret+"} {
				resp, _ := sendBody(t, addr, "POST", "http://sho.rt"+path, "password=x")
				testkit.Equal(t, path, fmt.Sprint(resp.StatusCode, resp.Header.Get("Allow")), "405GET, HEAD")
			}
		})
	})
}
