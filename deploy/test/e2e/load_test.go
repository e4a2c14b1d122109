package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

const (
	visitors   = 8                    // connections of a load
	visitPause = 5 * time.Millisecond // between the visits of a connection, to leave CPU to the programs under test
)

// target is a link and the outcomes of its visits.
type target struct {
	hash     string
	answered int64 // redirects received completely
	cut      int64 // requests sent, at least in part, without a complete answer
	refused  int64 // answers with status 503, which only links get that are not cached while their store is down
}

// checkTotals waits until all answered visits are counted and requires that no others are, except interrupted ones.
func checkTotals(t *testing.T, c caller, targets []target) {
	t.Helper()
	for _, link := range targets {
		var total int64
		testkit.SucceedsWithin(t, 2*testkit.Patience, func() error {
			if total = c.Total(t, link.hash); total < link.answered {
				return fmt.Errorf("%d clicks of %q are counted, %d were answered", total, link.hash, link.answered)
			}
			return nil
		})
		if total > link.answered+link.cut {
			t.Errorf("%d clicks of %q are counted, only %d were answered and %d interrupted", total, link.hash,
				link.answered, link.cut)
		}
		if link.answered == 0 {
			t.Errorf("no visit of %q was answered", link.hash)
		}
		t.Logf("%q: answered %d, interrupted %d, counted %d", link.hash, link.answered, link.cut, total)
	}
}

// load is a number of visitors that follow links until they are stopped, whether the service is up or down.
type load struct {
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	visitors []*visitor
}

// startLoad distributes the visitors over the edges, which are base URLs. They pause after each answer.
func startLoad(edges []string, seed uint64, pause time.Duration, targets ...target) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{cancel: cancel}
	for i := range visitors {
		v := &visitor{address: address(edges[i%len(edges)]), targets: slices.Clone(targets),
			random: rand.New(rand.NewPCG(seed, uint64(i+1))), pause: pause}
		l.visitors = append(l.visitors, v)
		l.wg.Go(func() { v.run(ctx) })
	}
	return l
}

// stop ends the visits and returns the targets with the outcomes of all visitors.
func (l *load) stop(t *testing.T) []target {
	t.Helper()
	l.cancel()
	l.wg.Wait()
	targets := slices.Clone(l.visitors[0].targets)
	for _, v := range l.visitors {
		if v.err != nil {
			t.Errorf("visitor: %v", v.err)
		}
		if v == l.visitors[0] {
			continue
		}
		for i := range targets {
			targets[i].answered += v.targets[i].answered
			targets[i].cut += v.targets[i].cut
			targets[i].refused += v.targets[i].refused
		}
	}
	return targets
}

// visitor follows random links over a persistent connection. It does not use http.Client, which may send a request
// again that got no answer, so that one visit could be counted twice.
type visitor struct {
	address string
	targets []target
	random  *rand.Rand
	pause   time.Duration // after each answer
	err     error         // set if an answer is neither a redirect nor 503
}

func (v *visitor) run(ctx context.Context) {
	for ctx.Err() == nil && v.err == nil {
		conn, err := net.DialTimeout("tcp", v.address, time.Second)
		if err != nil {
			<-time.After(5 * time.Millisecond)
			continue // the service is down, and nothing was sent
		}
		v.visit(ctx, conn)
		conn.Close()
	}
}

// visit sends requests until the connection breaks or ctx is done.
func (v *visitor) visit(ctx context.Context, conn net.Conn) {
	answers := bufio.NewReader(conn)
	for ctx.Err() == nil {
		link := &v.targets[v.random.IntN(len(v.targets))]
		conn.SetDeadline(time.Now().Add(testkit.Patience))
		_, err := fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n", link.hash, v.address)
		var res *http.Response
		var body []byte
		if err == nil {
			res, err = http.ReadResponse(answers, nil)
		}
		if err == nil {
			body, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		if err != nil {
			link.cut++
			return
		}
		switch res.StatusCode {
		case http.StatusFound:
			link.answered++
		case http.StatusServiceUnavailable:
			if !bytes.Contains(body, []byte("is starting")) { // like a closed port
				link.refused++
			}
		default:
			v.err = fmt.Errorf("GET /%s: %s", link.hash, res.Status)
			return
		}
		<-time.After(v.pause)
		if res.Close {
			return
		}
	}
}
