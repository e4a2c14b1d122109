package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// An account gets one file at a time, and does not delay other accounts.
func TestExportsTakeTurns(t *testing.T) {
	t.Parallel()
	held, began := make(chan struct{}), make(chan struct{})
	var exports atomic.Int64
	s := startFaulty(t, func(_ context.Context, method string) error {
		if method == "LinksAfter" && exports.Add(1) == 1 {
			close(began)
			<-held
		}
		return nil
	}, unpaced)
	link, foreign := s.addLink(t, "first", "https://example.org/"), s.addForeign(t)
	b, other := s.signedIn(t), s.browser(t)
	other.signIn("other@example.org", password)
	for _, account := range []int64{s.account.ID, foreign.AccountID} {
		testkit.Must(t, s.links.PutImport(t.Context(), schema.ImportStatus{AccountID: account, ID: "1", Status: "{}",
			UpdatedAt: time.Now()}, time.Time{}))
	}
	var first sync.WaitGroup
	window := b.copy()
	first.Go(func() { window.get("/dashboard/export.csv").want(t, http.StatusOK, "first") })
	<-began
	chosen := []string{"do", "export", "id", id(link.ID)}
	files := map[string]func(b *browser) answer{
		"GET of an export":  func(b *browser) answer { return b.get("/dashboard/export.csv") },
		"HEAD of an export": func(b *browser) answer { return b.send(http.MethodHead, "/dashboard/export.csv", nil) },
		"an export of a list": func(b *browser) answer {
			return b.get("/dashboard/export.csv?q=first")
		},
		"the errors of an import": func(b *browser) answer { return b.get("/dashboard/import/errors.csv") },
		"an export of some links": func(b *browser) answer {
			b.get("/dashboard/links")
			return b.post("/dashboard/links/chosen", chosen...)
		},
	}
	for name, file := range files {
		second := file(b)
		testkit.Equal(t, "status of "+name, second.status, http.StatusTooManyRequests)
		testkit.Equal(t, "Retry-After of "+name, second.header.Get("Retry-After"), "5")
		for range 3 {
			testkit.Equal(t, name+" of another account", file(other).status, http.StatusOK)
		}
	}
	close(held)
	first.Wait()
	for name, file := range files {
		testkit.Equal(t, name+" later", file(b).status, http.StatusOK)
	}
}

// Pages of shared reports take turns by account, then by share, then by the network of the reader.
func TestTurnsOfSharedReports(t *testing.T) {
	t.Parallel()
	const reading = 15 * time.Millisecond
	var readings atomic.Int64
	s := startFaulty(t, func(_ context.Context, method string) error {
		if method == "Report" {
			readings.Add(1)
			time.Sleep(reading) // the store is slow; the test does not wait for a state
		}
		return nil
	}, behindProxy, unpaced)
	s.addLink(t, "sale", "https://example.org/")
	s.addForeign(t)
	owner, other := s.signedIn(t), s.browser(t)
	other.signIn("other@example.org", password)
	networks := 0
	reader := func() *browser {
		networks++
		b := s.browser(t)
		b.fields = http.Header{"X-Forwarded-For": {fmt.Sprintf("192.0.%d.%d", networks/200, networks%200)}}
		return b
	}
	foreign, one := other.share(t), owner.share(t)
	readings.Store(0)
	reader().get(foreign+"?browser=quiet").want(t, http.StatusOK)
	each := readings.Load()
	for name, c := range map[string]struct {
		shares, networks, clients int // of the flood
		victim                    string
		most                      int64 // pages that are made until the victim has its own
	}{
		"the account of the flood is another one": {20, 24, 24, foreign, 5},
		"the share of the flood is another one":   {1, 24, 24, one, 5},
		"the network of the flood is another one": {0, 1, 5, one, 4},
	} {
		flooded := []string{one}
		if c.shares > 0 {
			flooded = nil
		}
		for range c.shares {
			flooded = append(flooded, owner.share(t))
		}
		ctx, cancel := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		var b *browser
		for i := range c.clients {
			if i < c.networks {
				b = reader()
			}
			client := b.copy()
			flood.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					client.get(fmt.Sprint(flooded[i%len(flooded)], "?browser=", c.shares, "-", i, "-", n)) // refused now and then
				}
			})
		}
		began := readings.Load()
		testkit.Eventually(t, "pages are made", func() bool { return readings.Load() > began+3*each })
		for i := range 5 {
			before := readings.Load()
			reader().get(fmt.Sprint(c.victim, "?browser=", c.shares, "-", i)).want(t, http.StatusOK)
			if during := readings.Load() - before; during > c.most*each {
				t.Errorf("%s: %d readings while a page was made that takes %d", name, during, each)
			}
		}
		cancel()
		flood.Wait()
	}
}
