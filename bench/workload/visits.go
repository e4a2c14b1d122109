package workload

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"

	"linkstream/bench/load"
)

const (
	seed = 2026
	// DefaultVisitors is the number of visitors of a history, and of visits unless a flag says otherwise.
	DefaultVisitors = 4096
	// maxWarmed is the largest number of links that are each visited once first, so that caches hold them during the
	// measured rounds. With more links, some look-ups are measured as well.
	maxWarmed = 20_000
)

// Visitors returns n visitors, who visit again and again. The same n makes the same visitors in every run.
func Visitors(n int) []load.Visitor { return load.Visitors(n, seed) }

// Random returns a generator of random numbers. The same stream repeats in every run.
func Random(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// Popularity returns the popularity of links that every run shares.
func Popularity(links int) *load.Popularity { return load.NewPopularity(links, seed) }

// Visits is the workload of redirects: visitors follow links by Zipf's law. It counts the answers of each link. Sources
// of several servers may be used at the same time.
type Visits struct {
	Links   Links
	Visited int // number of links that are visited; the links with the lowest numbers
	// Reconnect makes each request ask the server to close the connection, as load.Target.Reconnect requires.
	Reconnect bool
	Uniform   bool // visitors follow all links alike, instead of by Zipf's law
	Short     bool // visitors send two header lines, instead of what browsers send

	visitors []load.Visitor
	seeds    atomic.Uint64
	clicks   []atomic.Uint32 // answers of each link, of servers whose clicks the service counts
}

// NewVisits returns visits of a number of visitors to the first visited links.
func NewVisits(links Links, visited, visitors int) *Visits {
	return &Visits{Links: links, Visited: visited, visitors: Visitors(visitors),
		clicks: make([]atomic.Uint32, links.Count)}
}

// Counted returns the requests to a system that counts its clicks. Their answers are counted here as well.
func (v *Visits) Counted(addr string) func(conn int) load.Source { return v.source(addr, true, false) }

// Uncounted returns the requests to an edge whose clicks no worker counts.
func (v *Visits) Uncounted(addr string) func(conn int) load.Source {
	return v.source(addr, false, false)
}

// To returns requests of one path from the same visitors. check checks each answer.
func (v *Visits) To(addr, path string, check func(load.Answer) error) func(conn int) load.Source {
	source := v.source(addr, false, false)
	return func(conn int) load.Source {
		one := source(conn).(*visit)
		one.path, one.check = path, check
		return one
	}
}

// Bare returns the same requests for a server that always redirects to BareURL.
func (v *Visits) Bare(addr string) func(conn int) load.Source { return v.source(addr, false, true) }

// AddClick counts an answer that did not go through a source.
func (v *Visits) AddClick(link int) { v.clicks[link].Add(1) }

// Clicks returns the counted answers of a link.
func (v *Visits) Clicks(link int) int64 { return int64(v.clicks[link].Load()) }

// MostVisited returns the link with the most counted answers.
func (v *Visits) MostVisited() (link int) {
	for i := range v.clicks {
		if v.clicks[i].Load() > v.clicks[link].Load() {
			link = i
		}
	}
	return link
}

func (v *Visits) source(addr string, counted, bare bool) func(int) load.Source {
	headers := make([][]byte, len(v.visitors))
	for i, visitor := range v.visitors {
		first := " HTTP/1.1\r\n"
		if v.Reconnect {
			first += "Connection: close\r\n"
		}
		headers[i] = visitor.AppendHeader([]byte(first), addr, v.Short)
	}
	warmed := new(atomic.Int64)
	if v.Visited > maxWarmed {
		warmed.Store(int64(v.Visited))
	}
	return func(int) load.Source {
		seed := v.seeds.Add(1) // a different sequence for each connection of each round
		return &visit{visits: v, headers: headers, counted: counted, bare: bare, warmed: warmed,
			random: Random(seed), popularity: load.NewPopularity(v.Visited, seed)}
	}
}

// visit is the requests of one connection.
type visit struct {
	visits        *Visits
	headers       [][]byte
	random        *rand.Rand
	popularity    *load.Popularity
	counted, bare bool
	warmed        *atomic.Int64 // links visited so far, from the first one on, by all connections to the server
	path          string        // of every request, instead of a link's
	check         func(load.Answer) error

	link int
	url  []byte // scratch
}

// Append implements load.Source.
func (v *visit) Append(dst []byte) []byte {
	if v.link = v.popularity.Next(); v.visits.Uniform {
		v.link = v.random.IntN(v.visits.Visited)
	}
	if v.warmed.Load() < int64(v.visits.Visited) {
		v.link = int(v.warmed.Add(1)-1) % v.visits.Visited // several connections may pass the end at the same time
	}
	if dst = append(dst, "GET "...); v.path != "" {
		dst = append(dst, v.path...)
	} else {
		dst = v.visits.Links.AppendHash(append(dst, '/'), v.link)
	}
	return append(dst, v.headers[v.random.IntN(len(v.headers))]...)
}

// Check implements load.Source.
func (v *visit) Check(a load.Answer) error {
	if v.check != nil {
		return v.check(a)
	}
	if v.url = v.visits.Links.AppendURL(v.url[:0], v.link); v.bare {
		v.url = append(v.url[:0], BareURL...)
	}
	if a.Status != http.StatusFound || !bytes.Equal(a.Location, v.url) {
		return fmt.Errorf("link %q: status %d, location %q, want 302 and %q: %.200q",
			v.visits.Links.Hash(v.link), a.Status, a.Location, v.url, a.Body)
	}
	if v.counted {
		v.visits.AddClick(v.link)
	}
	return nil
}
