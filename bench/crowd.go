package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"linkstream/bench/load"
	"linkstream/bench/report"
)

const (
	crowdSize   = 4096 // different visitors, who come again and again
	crowdSeed   = 2026
	verifyEvery = 200 * time.Millisecond
	// maxPrimed is up to how many links are each visited once before all else, so that caches have them when it counts.
	// Of more links, some are looked up in the midst of the rounds, as it would be in reality.
	maxPrimed = 20_000
	// maxListed is how many links are compared with the list, the newest ones: its pages are read one by one. Popular links
	// are anywhere among them.
	maxListed = 100_000
)

// crowd is who visits the links, and how often they were redirected.
type crowd struct {
	links    linkSet
	visited  int // links that are, from the first on
	primed   int // up to so many links, each is visited once before all else
	visitors []load.Visitor
	seeds    atomic.Uint64
	clicks   []atomic.Uint32 // by link, of those that the service counts
}

func newCrowd(links linkSet, visited int) *crowd {
	return &crowd{links: links, visited: visited, primed: maxPrimed, visitors: load.Visitors(crowdSize, crowdSeed),
		clicks: make([]atomic.Uint32, links.count)}
}

// visits makes the requests to a whole service, whose counts are checked at the end.
func (c *crowd) visits(addr string) func(int) load.Source { return c.source(addr, true, false) }

// visitsUncounted makes the requests to an edge behind which nobody counts.
func (c *crowd) visitsUncounted(addr string) func(int) load.Source {
	return c.source(addr, false, false)
}

// bareVisits makes the same requests to a server that has one answer.
func (c *crowd) bareVisits(addr string) func(int) load.Source { return c.source(addr, false, true) }

func (c *crowd) source(addr string, counted, bare bool) func(int) load.Source {
	headers := make([][]byte, len(c.visitors))
	for i, v := range c.visitors {
		headers[i] = v.AppendHeader([]byte(" HTTP/1.1\r\n"), addr)
	}
	primed := new(atomic.Int64)
	if c.visited > c.primed {
		primed.Store(int64(c.visited))
	}
	return func(int) load.Source {
		seed := c.seeds.Add(1) // each connection of each round draws others
		return &visit{crowd: c, headers: headers, counted: counted, bare: bare, primed: primed,
			random: rand.New(rand.NewPCG(seed, crowdSeed)), popularity: load.NewPopularity(c.visited, seed)}
	}
}

// visit is a request for a link, and the next one, and so on.
type visit struct {
	crowd         *crowd
	headers       [][]byte
	random        *rand.Rand
	popularity    *load.Popularity
	counted, bare bool
	primed        *atomic.Int64 // links that have been visited, from the first on, by all connections to the server

	link int
	url  []byte // scratch
}

// Append implements load.Source.
func (v *visit) Append(dst []byte) []byte {
	if v.link = v.popularity.Next(); v.primed.Load() < int64(v.crowd.visited) {
		v.link = int(v.primed.Add(1)-1) % v.crowd.visited // a few connections may come too late at once
	}
	dst = v.crowd.links.appendHash(append(dst, "GET /"...), v.link)
	return append(dst, v.headers[v.random.IntN(len(v.headers))]...)
}

// Check implements load.Source.
func (v *visit) Check(a load.Answer) error {
	if v.url = v.crowd.links.appendURL(v.url[:0], v.link); v.bare {
		v.url = append(v.url[:0], someURL...)
	}
	if a.Status != http.StatusFound || !bytes.Equal(a.Location, v.url) {
		return fmt.Errorf("link %q leads to %q with status %d: %.200q", v.crowd.links.hash(v.link), a.Location, a.Status, a.Body)
	}
	if v.counted {
		v.crowd.clicks[v.link].Add(1)
	}
	return nil
}

// visitedService is a service that the crowd visits. It is done with a load when its clicks are counted.
func (b *bench) visitedService(service *runningService, crowd *crowd) *subject {
	s := b.newSubject(service.name, service.edge, crowd.visits(service.edge), service.atEdge...)
	if service.counted != nil {
		s.settle = service.counted.settle
	}
	return s
}

// verify adds the checks that the service has counted each click that was answered, and no other one.
func (b *bench) verify(ctx context.Context, s *runningService, c *crowd) error {
	compared := min(c.links.count, maxListed)
	b.say("comparing the counts of %d links with the answers", compared)
	want, hottest := int64(0), 0
	for link := range c.clicks {
		n := c.clicks[link].Load()
		if link >= c.links.count-compared {
			want += int64(n)
		}
		if n > c.clicks[hottest].Load() {
			hottest = link
		}
	}
	deadline := time.Now().Add(settleTimeout)
	tick := time.NewTicker(verifyEvery)
	defer tick.Stop()
	for {
		listed, wrong, err := s.listed(ctx, c, compared)
		if err != nil {
			return err
		}
		inStats, err := s.api.clicks(ctx, c.links.hash(hottest))
		if err != nil {
			return err
		}
		checks := []report.Check{
			{Name: fmt.Sprintf("clicks of the newest %d links in the list", compared), Want: want, Got: listed},
			{Name: "links with other clicks in the list than answers", Want: 0, Got: wrong},
			{Name: "clicks of the most popular link in its stats", Want: int64(c.clicks[hottest].Load()), Got: inStats},
		}
		if listed >= want || time.Now().After(deadline) {
			b.report.Checks = append(b.report.Checks, checks...)
			break
		}
		<-tick.C // a service that runs by itself may still be counting
	}
	if s.counted == nil {
		return nil
	}
	return b.checkCounter(ctx, s.counted)
}

// listed sums up the newest links of the list, and returns how many of them have other clicks than they had answers.
func (s *runningService) listed(ctx context.Context, c *crowd, count int) (sum, wrong int64, err error) {
	found, last := 0, 1
	for page := 1; page <= last && found < count; page++ {
		links, err := s.api.links(ctx, page)
		if err != nil {
			return 0, 0, err
		}
		last = links.Meta.LastPage
		for _, item := range links.Data {
			link, ours := c.links.link(item.Hash)
			if !ours || found == count {
				continue
			}
			found++
			sum += item.Clicks
			if item.Clicks != int64(c.clicks[link].Load()) {
				wrong++
			}
		}
	}
	return sum, wrong + int64(count-found), nil
}
