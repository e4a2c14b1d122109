//go:build deploy

package upgrade_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

const (
	visitors   = 6
	visitPause = 12 * time.Millisecond // of a visitor after each answer: a few hundred redirects per second in all
	createPace = 100 * time.Millisecond
)

// balancer sends requests to those of its backends that are up, as a load balancer does. Nothing is under way on a
// backend that is down, so that what it has recorded is what was answered.
type balancer struct{ backends []*backend }

type backend struct {
	addr string
	up   sync.RWMutex // read-locked during a request, locked while the backend is down
}

func newBalancer(addrs ...string) *balancer {
	b := &balancer{}
	for _, addr := range addrs {
		b.backends = append(b.backends, &backend{addr: addr})
	}
	return b
}

// down takes a backend out, once it has answered what is under way, calls change, and puts it back.
func (b *balancer) down(addr string, change func()) {
	i := slices.IndexFunc(b.backends, func(one *backend) bool { return one.addr == addr })
	b.backends[i].up.Lock()
	defer b.backends[i].up.Unlock()
	change()
}

// send calls request with the address of a backend that is up. If all are down, it waits for one.
func (b *balancer) send(random *rand.Rand, request func(addr string) error) error {
	for {
		for _, i := range random.Perm(len(b.backends)) {
			one := b.backends[i]
			if !one.up.TryRLock() {
				continue
			}
			defer one.up.RUnlock()
			return request(one.addr)
		}
		time.Sleep(time.Millisecond)
	}
}

// agents are user agents of all kinds of devices, and referrers.
var agents = []struct{ agent, referrer string }{
	{"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0", ""},
	{"Mozilla/5.0 (Linux; Android 16; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile " +
		"Safari/537.36", "https://news.example.org/today"},
	{"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", ""},
	{"curl/8.5.0", "https://example.net/"},
}

// load is visitors that follow links, and a client that creates links, until they are stopped.
type load struct {
	stopping chan struct{}
	wg       sync.WaitGroup
	mu       sync.Mutex
	answered map[string]int64 // redirects by hash
	errs     []error
	visits   atomic.Int64
}

// startLoad starts visitors of links on the edges. Each link that is created through the apis is followed once.
func startLoad(edges, apis *balancer, links []link) *load {
	l := &load{stopping: make(chan struct{}), answered: map[string]int64{}}
	for i := range visitors {
		l.wg.Go(func() { l.follow(edges, links, rand.New(rand.NewPCG(7, uint64(i)))) })
	}
	if apis != nil {
		l.wg.Go(func() { l.create(edges, apis) })
	}
	return l
}

func (l *load) follow(edges *balancer, links []link, random *rand.Rand) {
	for l.pause(visitPause) {
		l.visit(edges, links[random.IntN(len(links))], random)
	}
}

func (l *load) create(edges, apis *balancer) {
	random := rand.New(rand.NewPCG(8, 0))
	for i := 0; l.pause(createPace); i++ {
		made := link{Hash: fmt.Sprintf("made-%d", i), Host: defaultDomain}
		err := apis.send(random, func(addr string) error { return shorten(addr, made.Hash, map[string]any{}) })
		if err != nil {
			l.fail(err)
			return
		}
		l.visit(edges, made, random)
	}
}

func (l *load) visit(edges *balancer, to link, random *rand.Rand) {
	by := agents[random.IntN(len(agents))]
	if err := edges.send(random, func(addr string) error { return to.visit(addr, by.agent, by.referrer) }); err != nil {
		l.fail(err)
		return
	}
	l.visits.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered[to.Hash]++
}

func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

// pause waits and reports whether the load goes on.
func (l *load) pause(d time.Duration) bool {
	select {
	case <-l.stopping:
		return false
	case <-time.After(d):
		return true
	}
}

// run waits until so many more visits were answered.
func (l *load) run(t *testing.T, visits int64) {
	t.Helper()
	until := l.visits.Load() + visits
	testkit.SucceedsWithin(t, 10*time.Minute, func() error {
		if n := l.visits.Load(); n < until {
			return fmt.Errorf("only %d of %d visits were answered", n, until)
		}
		return nil
	})
}

// stop ends the load, requires that each request was answered as it should be, and returns the answered redirects by
// hash.
func (l *load) stop(t *testing.T) map[string]int64 {
	t.Helper()
	close(l.stopping)
	l.wg.Wait()
	for _, err := range l.errs {
		t.Error(err)
	}
	t.Logf("%d redirects of %d links were answered", l.visits.Load(), len(l.answered))
	return l.answered
}
