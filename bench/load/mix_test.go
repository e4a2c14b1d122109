package load_test

import (
	"bufio"
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"linkstream/bench/load"
	"linkstream/schema"
	"linkstream/schema/enrich"
)

func TestPopularity(t *testing.T) {
	const links = 10_000
	t.Run("each rank has a link of its own", func(t *testing.T) {
		p := load.NewPopularity(links, 1)
		seen := map[int]bool{}
		for rank := range uint64(links) {
			link := p.Link(rank)
			if link < 0 || link >= links || seen[link] {
				t.Fatalf("rank %d: link %d", rank, link)
			}
			seen[link] = true
		}
	})
	t.Run("ranks follow Zipf's law", func(t *testing.T) {
		p := load.NewPopularity(links, 1)
		counts := map[int]int{}
		for range 1_000_000 {
			counts[p.Next()]++
		}
		// A rank has (rank+10)^-1.1 of the clicks, divided by the sum over all ranks: 2 in 100 for the first of ten thousand.
		top := counts[p.Link(0)]
		if top < 15_000 || top > 25_000 {
			t.Errorf("the most popular link has %d clicks in a million", top)
		}
		for rank, fewer := range map[uint64]float64{9: 2.03, 99: 13.8} {
			if got := float64(top) / float64(counts[p.Link(rank)]); got < fewer*0.9 || got > fewer*1.1 {
				t.Errorf("rank %d has %.2f times fewer clicks than rank 0, want %.2f", rank, got, fewer)
			}
		}
	})
	t.Run("the same seed draws the same links, another one others", func(t *testing.T) {
		draw := func(seed uint64) (drawn []int) {
			p := load.NewPopularity(links, seed)
			for range 20 {
				drawn = append(drawn, p.Next())
			}
			return drawn
		}
		if !slices.Equal(draw(1), draw(1)) || slices.Equal(draw(1), draw(2)) {
			t.Errorf("seed 1: %v, again: %v, seed 2: %v", draw(1), draw(1), draw(2))
		}
	})
	t.Run("one link gets all", func(t *testing.T) {
		if link := load.NewPopularity(1, 1).Next(); link != 0 {
			t.Errorf("link %d", link)
		}
	})
}

func TestVisitors(t *testing.T) {
	const n = 4096
	visitors := load.Visitors(n, 1)
	t.Run("devices and referrers are in realistic shares", func(t *testing.T) {
		devices := map[schema.Device]int{}
		agents := map[string]bool{}
		direct := 0
		for _, v := range visitors {
			devices[enrich.ParseAgent(v.UserAgent).Device]++
			agents[v.UserAgent] = true
			if v.Referrer == "" {
				direct++
			}
		}
		for device, share := range map[schema.Device][2]int{
			schema.Mobile: {55, 75}, schema.Desktop: {20, 35}, schema.Tablet: {1, 4}, schema.Bot: {2, 8},
		} {
			if percent := 100 * devices[device] / n; percent < share[0] || percent > share[1] {
				t.Errorf("%d%% are %s", percent, device)
			}
		}
		if percent := 100 * direct / n; percent < 45 || percent > 55 {
			t.Errorf("%d%% have no referrer", percent)
		}
		if len(agents) < n/10 {
			t.Errorf("only %d different agents", len(agents))
		}
	})
	t.Run("their headers are valid and say who they are", func(t *testing.T) {
		for _, v := range visitors {
			raw := v.AppendHeader([]byte("GET /abc HTTP/1.1\r\n"), "127.0.0.1:8080")
			req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
			if err != nil {
				t.Fatalf("%v in %q", err, raw)
			}
			if req.Host != "127.0.0.1:8080" || req.UserAgent() != v.UserAgent || req.Referer() != v.Referrer {
				t.Fatalf("%q is read as host %q, agent %q, referrer %q", raw, req.Host, req.UserAgent(), req.Referer())
			}
			if len(v.UserAgent) > schema.MaxUserAgentLen || strings.Contains(v.UserAgent, "%!") {
				t.Fatalf("agent %q", v.UserAgent)
			}
		}
	})
	t.Run("the same seed makes the same visitors", func(t *testing.T) {
		if !slices.Equal(visitors, load.Visitors(n, 1)) {
			t.Error("they differ")
		}
	})
}
