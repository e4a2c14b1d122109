package redirect_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestClick(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, nil)
		id := e.link(t, 0, "abc", "https://example.com/")
		addr := e.serve(t, loops)

		before := time.Now().Truncate(time.Millisecond)
		send(t, addr, "GET", "http://sho.rt/abc", "User-Agent", "Browser/1.0", "Referer", "https://from.example/ü",
			"Accept-Language", " de-AT;q=0.9,de;q=0.8, en")
		after := time.Now()
		clicks := e.clicks(t)
		if len(clicks) != 1 {
			t.Fatalf("%d clicks", len(clicks))
		}
		c := clicks[0]
		if c.LinkID != id || string(c.UserAgent) != "Browser/1.0" || string(c.Referrer) != "https://from.example/ü" {
			t.Errorf("link %d, user agent %q, referrer %q", c.LinkID, c.UserAgent, c.Referrer)
		}
		if string(c.Language) != "de-AT" {
			t.Errorf("language %q", c.Language)
		}
		if c.AccountID != e.accountID || e.accountID == 0 {
			t.Errorf("account %d, want the link's owner %d", c.AccountID, e.accountID)
		}
		if c.ClickedAt.Before(before) || c.ClickedAt.After(after) {
			t.Errorf("clicked at %v, not between %v and %v", c.ClickedAt, before, after)
		}
		if string(c.Network) != "\x7f\x00\x00" {
			t.Errorf("network %x", c.Network)
		}
		want := e.cfg.Visitors.Hash(c.ClickedAt, e.accountID, netip.MustParseAddr("127.0.0.1"), c.UserAgent)
		if c.Visitor != want || want == 0 {
			t.Errorf("visitor %x, want %x", c.Visitor, want)
		}
	})
}

func TestClickLanguage(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		addr := e.serve(t, loops)
		long := strings.Repeat("x", 5000)
		for header, want := range map[string]string{
			"de": "de", "de-AT,de": "de-AT", "zh-Hant-TW;q=1": "zh-Hant-TW", "*": "*", "": "", ",de": "", ";q=1": "",
			"en , de": "en",
			long:      long[:schema.MaxLanguageLen], "é\xff": "é\xff",
		} {
			send(t, addr, "GET", "http://sho.rt/abc", "Accept-Language", header)
			clicks := e.clicks(t)
			if len(clicks) != 1 || string(clicks[0].Language) != want {
				t.Errorf("%d clicks, the language of %.20q is not %q: %+v", len(clicks), header, want, clicks)
			}
		}
	})
}

func TestWhatIsAClick(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.link(t, 0, "off", "https://example.com/")
		storetest.SetActive(t, e.store, 0, "off", false)
		addr := e.serve(t, loops)
		for _, c := range []struct {
			name, method, path string
			fields             []string
			clicks             int
		}{
			{"GET", "GET", "/abc", nil, 1},
			{"GET of a cached link", "GET", "/abc", nil, 1},
			{"GET with another purpose", "GET", "/abc", []string{"Sec-Purpose", "other"}, 1},
			{"HEAD", "HEAD", "/abc", nil, 0},
			{"Sec-Purpose: prefetch", "GET", "/abc", []string{"Sec-Purpose", "prefetch"}, 0},
			{"Sec-Purpose: prefetch;prerender", "GET", "/abc", []string{"Sec-Purpose", "prefetch;prerender"}, 0},
			{"Purpose: prefetch", "GET", "/abc", []string{"Purpose", "prefetch"}, 0},
			{"X-Purpose: prefetch", "GET", "/abc", []string{"X-Purpose", "prefetch"}, 0},
			{"X-moz: prefetch", "GET", "/abc", []string{"X-moz", "prefetch"}, 0},
			{"an unknown link", "GET", "/other", nil, 0},
			{"an inactive link", "GET", "/off", nil, 0},
		} {
			t.Run(c.name, func(t *testing.T) {
				send(t, addr, c.method, "http://sho.rt"+c.path, c.fields...)
				if n := len(e.clicks(t)); n != c.clicks {
					t.Errorf("%d clicks, want %d", n, c.clicks)
				}
			})
		}
	})
}

func TestClickNetwork(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		network := func(t *testing.T, proxies string, fields ...string) []byte {
			t.Helper()
			e := newEdge(t, func(e *edge) {
				testkit.Must(t, e.cfg.TrustedProxies.Set(proxies))
			})
			e.link(t, 0, "abc", "https://example.com/")
			send(t, e.serve(t, loops), "GET", "http://sho.rt/abc", fields...)
			clicks := e.clicks(t)
			if len(clicks) != 1 {
				t.Fatalf("%d clicks", len(clicks))
			}
			return clicks[0].Network
		}
		const xff = "X-Forwarded-For"
		for _, c := range []struct {
			name, proxies string
			fields        []string
			network       string
		}{
			{"the /24 of an IPv4 address", "127.0.0.1", []string{xff, "203.0.113.77"}, "\xcb\x00\x71"},
			{"the /48 of an IPv6 address", "127.0.0.0/8", []string{xff, "2001:db8:1:2::3"}, "\x20\x01\x0d\xb8\x00\x01"},
			{"the nearest known address", "127.0.0.1", []string{xff, "203.0.113.77, unknown, "}, "\xcb\x00\x71"},
			{"the peer if it is not a trusted proxy", "192.0.2.1", []string{xff, "203.0.113.77"}, "\x7f\x00\x00"},
		} {
			t.Run(c.name, func(t *testing.T) {
				if got := network(t, c.proxies, c.fields...); string(got) != c.network {
					t.Errorf("network %x, want %x", got, c.network)
				}
			})
		}
	})
}

// Where memory has no room for a click, a goroutine finds some, or drops the click and says so.
func TestRedirectWithFullSpool(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, func(e *edge) {
			e.spoolCfg.Lanes, e.spoolCfg.SegmentBytes, e.spoolCfg.MaxBytes = 1, 4<<10, 16<<10
		})
		e.link(t, 0, "abc", "https://example.com/")
		addr := e.serve(t, loops)
		answered := 0
		for e.spool.Dropped() < 10 {
			if resp, _ := send(t, addr, "GET", "http://sho.rt/abc"); resp.StatusCode != 302 {
				t.Fatalf("redirect %d: status %d", answered, resp.StatusCode)
			}
			answered++
		}
		testkit.Equal(t, "clicks in the spool and dropped", len(e.clicks(t))+10, answered)
		testkit.Equal(t, "redirects counted", e.metric(t, `linkstream_edge_answers_total{status="302"}`), answered)
	})
}
