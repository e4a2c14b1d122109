package redirect_test

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestLimitedLinks(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newRuledEdge(t)
		addr := e.serve(t, loops)
		get := func(t *testing.T, method, hash string, fields ...string) (*http.Response, string) {
			t.Helper()
			return send(t, addr, method, "http://sho.rt/"+hash, fields...)
		}
		want := func(t *testing.T, resp *http.Response, status int, location string) {
			t.Helper()
			testkit.Equal(t, "status", resp.StatusCode, status)
			testkit.Equal(t, "location", resp.Header.Get("Location"), location)
		}
		t.Run("the link expires after its limit of visitors", func(t *testing.T) {
			link := e.extend(t, "three", schema.Behaviour{MaxClicks: 3})
			for range 3 {
				resp, _ := get(t, http.MethodHead, "three", "User-Agent", firefox)
				want(t, resp, http.StatusFound, "https://example.com/")
				resp, _ = get(t, http.MethodGet, "three", "User-Agent", firefox, "Sec-Purpose", "prefetch")
				want(t, resp, http.StatusFound, "https://example.com/")
				resp, body := get(t, http.MethodGet, "three", "User-Agent", crawler)
				want(t, resp, http.StatusOK, "")
				testkit.Equal(t, "the page names the target", strings.Contains(body, "https://example.com/"), true)
				resp, _ = get(t, http.MethodGet, "three?a=b", "User-Agent", firefox)
				want(t, resp, http.StatusFound, "https://example.com/?a=b")
			}
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodGet} {
				resp, _ := get(t, method, "three", "User-Agent", firefox)
				want(t, resp, http.StatusGone, "")
			}
			clicks := e.clicks(t)
			testkit.Equal(t, "clicks", len(clicks), 3)
			for _, c := range clicks {
				testkit.Equal(t, "link", c.LinkID, link.ID)
				testkit.Equal(t, "counts towards the limit", c.Limited, true)
			}
		})
		t.Run("then a visit of the expired URL counts as a click", func(t *testing.T) {
			e.create(t, schema.Link{Hash: "one", URL: "https://example.com/", ExpiredURL: "https://example.com/gone",
				Behaviour: &schema.Behaviour{MaxClicks: 1, Rules: rules(schema.Conditions{Device: []string{schema.Mobile}})}})
			resp, _ := get(t, http.MethodGet, "one", "User-Agent", iPhone)
			want(t, resp, http.StatusFound, "https://example.com/0")
			for range 2 {
				resp, _ := get(t, http.MethodGet, "one", "User-Agent", iPhone)
				want(t, resp, http.StatusFound, "https://example.com/gone")
			}
			clicks := e.clicks(t)
			testkit.Equal(t, "clicks", len(clicks), 3)
			clicks = slices.DeleteFunc(clicks, func(c schema.Click) bool { return !c.Limited })
			testkit.Equal(t, "clicks that count towards the limit", len(clicks), 1)
		})
		t.Run("without the link store only visitors with a lease are redirected", func(t *testing.T) {
			e.extend(t, "leased", schema.Behaviour{MaxClicks: 6400})
			e.extend(t, "cached", schema.Behaviour{MaxClicks: 6400})
			resp, _ := get(t, http.MethodGet, "leased", "User-Agent", firefox)
			want(t, resp, http.StatusFound, "https://example.com/")
			_, err := e.resolver.Resolve([]byte("sho.rt"), []byte("cached"), netip.Addr{}, time.Now())
			testkit.Must(t, err)
			e.store.inject(func() error { return errors.New("away") })
			resp, _ = get(t, http.MethodGet, "leased", "User-Agent", firefox)
			want(t, resp, http.StatusFound, "https://example.com/")
			resp, _ = get(t, http.MethodGet, "cached", "User-Agent", firefox)
			want(t, resp, http.StatusServiceUnavailable, "")
			testkit.Equal(t, "Retry-After", resp.Header.Get("Retry-After"), "1")
			e.store.inject(nil)
			testkit.Eventually(t, "the store is asked again", func() bool {
				resp, _ := get(t, http.MethodGet, "cached", "User-Agent", firefox)
				return resp.StatusCode == http.StatusFound
			})
		})
	})
}

func TestFullSpoolSpendsNothing(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, func(e *edge) {
			e.spoolCfg = spool.Config{Dir: e.spoolCfg.Dir, MaxBytes: 16 << 10, SegmentBytes: 4 << 10, Lanes: 1, Sync: time.Hour}
		})
		addr := e.serve(t, loops)
		e.extend(t, "many", schema.Behaviour{MaxClicks: 1_000_000})
		redirected := 0
		for {
			resp, _ := send(t, addr, http.MethodGet, "http://sho.rt/many", "User-Agent", firefox)
			if resp.StatusCode == http.StatusServiceUnavailable {
				break
			}
			testkit.Equal(t, "status", resp.StatusCode, http.StatusFound)
			redirected++
		}
		testkit.Equal(t, "clicks", len(e.clicks(t)), redirected)
		use := func() int64 {
			testkit.Must(t, e.limits.Close(t.Context()))
			use, err := e.store.LimitUse(t.Context(), []int64{1})
			testkit.Must(t, err)
			testkit.Equal(t, "granted", use[1].Granted, use[1].Spent)
			return use[1].Spent
		}
		testkit.Equal(t, "spent", use(), int64(redirected))
	})
}
