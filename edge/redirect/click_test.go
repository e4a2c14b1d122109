package redirect_test

import (
	"fmt"
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
			{"HEAD", "HEAD", "/abc", nil, 0},
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

// speculativeFields returns header fields by which clients say, in any way that they use or used, that they load a page
// in advance.
func speculativeFields() (all []string) {
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Purpose", "X-moz", "Sec-Fetch-Purpose"} {
		for _, value := range []string{"prefetch", "Prefetch", "PREFETCH", "prefetch;prerender",
			"prefetch;anonymous-client-ip", "prefetch;prerender;anonymous-client-ip", "prefetch ; preview", "prerender",
			"preview", ": preview", "instant", "preload", "other, prefetch", "\"prefetch\""} {
			for _, name := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
				all = append(all, name+": "+value+"\r\n")
			}
		}
	}
	return append(all, "Sec-Purpose: prefetch\r\nSec-Speculation-Tags: null\r\n",
		"Purpose: other\r\nPurpose: prefetch\r\n", "Purpose:\r\nPurpose: prefetch\r\n", "X-Purpose: a,\r\n prefetch\r\n",
		"Sec-Purpose: other\r\nX-Moz: prefetch\r\n", "Cookie: a=b\r\nPurpose: prefetch\r\n",
		"Purpose: prefetch\r\nPurpose: other\r\nCookie: a=b\r\nX-Moz: other\r\n")
}

func TestSpeculativeLoads(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newRuledEdge(t)
		e.link(t, 0, "abc", "https://example.com/")
		e.extend(t, "one", schema.Behaviour{MaxClicks: 1})
		addr := e.serve(t, loops)
		status := func(hash, fields string) string {
			answer := say(t, addr, "GET /"+hash+" HTTP/1.1\r\nHost: sho.rt\r\nUser-Agent: "+firefox+"\r\n"+fields+
				"Connection: close\r\n\r\n")
			return answer[:min(len(answer), len("HTTP/1.1 302"))]
		}
		for _, fields := range speculativeFields() {
			for _, hash := range []string{"abc", "one"} {
				testkit.Equal(t, fmt.Sprintf("answer of %s to %q", hash, fields), status(hash, fields), "HTTP/1.1 302")
			}
			if n := len(e.clicks(t)); n > 0 {
				t.Errorf("%d clicks of %q", n, fields)
			}
		}
		for _, fields := range []string{"", "Sec-Purpose: other\r\n", "Purpose: navigate\r\n", "Purpose:\r\n", "X-Moz: 1\r\n",
			"Sec-Speculation-Tags:\r\n", "Sec-Fetch-Purpose: document\r\n", "Sec-Fetch-Dest: document\r\n",
			"X-Requested-With: prefetch\r\n", "Cookie: Purpose=prefetch\r\n", "Referer: https://prefetch.example/\r\n"} {
			testkit.Equal(t, fmt.Sprintf("answer to %q", fields), status("abc", fields), "HTTP/1.1 302")
			testkit.Equal(t, fmt.Sprintf("clicks of %q", fields), len(e.clicks(t)), 1)
		}
		testkit.Equal(t, "first visit", status("one", ""), "HTTP/1.1 302")
		testkit.Equal(t, "second visit", status("one", ""), "HTTP/1.1 410")
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
