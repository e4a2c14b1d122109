//go:build engines

package e2e_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// TestFrozenLinkStore has a link store whose machine does not answer, as when it is paused: nothing is refused.
// Visitors of cached links do not wait for it, whether or not their time has passed, and those of an edge that starts
// meanwhile are counted.
func TestFrozenLinkStore(t *testing.T) {
	t.Parallel()
	const ttl, lookup = 2 * time.Second, time.Second // the latter is defaultLookups
	s := newServices(t, sharedEngines(t), "LINKSTREAM_EDGE_CACHE_TTL="+ttl.String(), defaultLookups)
	edge := s.program("edge")
	store := relayTo(t, setting(edge.env, "LINKSTREAM_POSTGRES_DSN"))
	edge.env = append(edge.env, "LINKSTREAM_POSTGRES_DSN="+store.url)
	s.start(t)
	const host = "links.example.org"
	id := s.domain(t, s.email, host)
	owner := s.owner()
	owner.Alias(t, "cached", "https://example.com/")
	owner.Link(t, object{"long_url": "https://example.com/", "custom_alias": "own", "domain_id": id})
	visits := func(within time.Duration) {
		t.Helper()
		for hash, host := range map[string]string{"cached": address(s.edge), "own": host} {
			began := time.Now()
			s.click(t, hash, "User-Agent", desktop, "Host", host)
			if took := time.Since(began); took > within {
				t.Errorf("a visit of %s took %v", hash, took)
			}
		}
	}
	s.stop(t) // so that no change of the links comes later
	s.start(t)
	edge.awaitMetric(t, "linkstream_edge_changes_current", func(current float64) bool { return current == 1 })
	visits(time.Minute)
	edge.end(t, syscall.SIGTERM) // which writes a dump
	edge.start(t)

	time.Sleep(ttl + time.Second) // nothing has to happen meanwhile
	store.freeze()
	for range 20 {
		visits(lookup - 100*time.Millisecond) // a busy machine may take long
		time.Sleep(ttl / 10)                  // visitors pause; the test does not wait for a state
	}
	edge.kill(t)
	edge.launch(t)
	testkit.Eventually(t, "the edge listens", func() bool { return edge.process.Output.Contains("serving short links") })
	testkit.Succeeds(t, func() error { return s.visit(t, http.MethodHead, "/cached").IsStatus(http.StatusFound) })
	s.click(t, "cached", "User-Agent", phone)
	store.thaw()
	owner.WaitTotal(t, "cached", 22)
	testkit.Succeeds(t, func() error {
		totals := owner.Get(t, "/api/v1/links/cached/report").Body["totals"].(object)
		return testkit.Mismatch("visitors", number(t, totals, "visitors"), 2)
	})
	edge.awaitReady(t)
}

// relay passes connections on to a store until it is frozen: then it accepts connections and bytes, and passes on
// none.
type relay struct {
	url    string
	target string
	frozen sync.RWMutex // locked: frozen
}

// relayTo returns a relay to the store with a URL.
func relayTo(t *testing.T, store string) *relay {
	t.Helper()
	to, err := url.Parse(store)
	testkit.Must(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	t.Cleanup(func() { ln.Close() })
	r := &relay{target: to.Host}
	to.Host = ln.Addr().String()
	r.url = to.String()
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			go r.serve(client)
		}
	}()
	return r
}

func (r *relay) freeze() { r.frozen.Lock() }
func (r *relay) thaw()   { r.frozen.Unlock() }

func (r *relay) serve(client net.Conn) {
	defer client.Close()
	r.frozen.RLock()
	store, err := net.Dial("tcp", r.target)
	r.frozen.RUnlock()
	if err != nil {
		return
	}
	defer store.Close()
	go func() {
		defer client.Close()
		_, _ = io.Copy(passing{client, r}, store)
	}()
	_, _ = io.Copy(passing{store, r}, client)
}

// passing is a connection to which a relay writes while it is not frozen.
type passing struct {
	io.Writer
	relay *relay
}

func (p passing) Write(b []byte) (int, error) {
	p.relay.frozen.RLock()
	defer p.relay.frozen.RUnlock()
	return p.Writer.Write(b)
}
