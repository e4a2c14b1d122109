package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"linkstream/bench/proc"
	"linkstream/bench/report"
)

const (
	// ownTokens is how many a started service has: 512 of them may make a million requests a minute.
	ownTokens = 512
	// maxShortened bounds the links that are made through the API of a service that runs already.
	maxShortened = 20_000
	// settlePoll is how often a service is asked whether it is done. Being asked costs it CPU time that counts.
	settlePoll = 50 * time.Millisecond
	// settleTimeout bounds how long clicks may take to be counted once no more come.
	settleTimeout = 2 * time.Minute
)

// service is the whole of linkstream, started here or found running.
type runningService struct {
	name          string
	edge          string // host:port
	api           *api
	ingest        string        // host:port; "" if the service was running before, as are the fields below
	children      []*proc.Child // in the order of their start
	atEdge, atAPI []process     // that work for who visits links, or calls the API; first the one that answers
	counted       *counter      // of clicks
	engines       engines
}

// newService returns a service that has addresses and no processes yet.
func newService(name string) (*runningService, error) {
	addrs, err := freeAddrs(3)
	if err != nil {
		return nil, err
	}
	return &runningService{name: name, edge: addrs[0], api: &api{base: "http://" + addrs[1]}, ingest: addrs[2],
		counted: &counter{name: name, base: "http://" + addrs[2], metric: "linkstream_ingest_clicks_counted_total"}}, nil
}

// open starts the service or finds it, and makes the links. prepare fills the stores of a service that has yet to start.
func (b *bench) open(
	ctx context.Context, links linkSet, prepare ...func(ctx context.Context, on engines) error,
) (*runningService, error) {
	if !b.cfg.Start {
		return b.find(ctx, links)
	}
	on, err := b.startEngines(ctx)
	if err != nil {
		return nil, err
	}
	b.say("making %d links", links.count)
	tokens, err := seed(ctx, on, links, ownTokens)
	if err != nil {
		return nil, err
	}
	for _, fill := range prepare {
		if err := fill(ctx, on); err != nil {
			return nil, err
		}
	}
	b.say("building and starting the service")
	s, err := on.start(ctx)
	if err != nil {
		return nil, err
	}
	s.api.tokens, s.engines = tokens, on
	for _, child := range s.children {
		b.stops = append(b.stops, child.Stop) // a service that loses clicks when it stops would say so
	}
	return s, s.await(ctx)
}

// await returns when a service that was started is ready.
func (s *runningService) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, child := range s.children { // all of them are waited for, whichever answers where
		err := child.Await(ctx, func(ctx context.Context) error {
			for _, base := range []string{"http://" + s.edge, s.api.base, s.counted.base} {
				if err := ready(ctx, base); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// find makes the links through the API of a running service.
func (b *bench) find(ctx context.Context, links linkSet) (*runningService, error) {
	s := &runningService{name: running, edge: strings.TrimPrefix(b.cfg.Edge, "http://"), api: &api{base: b.cfg.API}}
	s.api.tokens = strings.FieldsFunc(b.cfg.Tokens, func(r rune) bool { return r == ',' })
	if len(s.api.tokens) == 0 {
		return nil, fmt.Errorf("-token: name a token of the service, or add -start for one of the run's own")
	}
	if links.count > maxShortened {
		return nil, fmt.Errorf("-links: a running service gets at most %d", maxShortened)
	}
	for i := range links.count {
		if i%1000 == 0 {
			b.say("making links through the API: %d of %d", i, links.count)
		}
		if err := s.api.shorten(ctx, links.hash(i), links.url(i)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// counter is a metric that counts what a node has done with clicks.
type counter struct {
	name         string // of whose clicks
	base, metric string
	want         int64 // clicks so far
}

// settle returns once so many more clicks are counted.
func (c *counter) settle(ctx context.Context, clicks int64) error {
	c.want += clicks
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	tick := time.NewTicker(settlePoll)
	defer tick.Stop()
	for {
		got, err := readMetric(ctx, c.base, c.metric)
		if err != nil {
			return err
		}
		if int64(got) >= c.want {
			return nil // more is for the checks at the end to find
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to be %d: it is %.0f: %w", c.metric, c.want, got, ctx.Err())
		}
	}
}

// checkCounter adds a check that the metric has counted each click and no other one.
func (b *bench) checkCounter(ctx context.Context, c *counter) error {
	got, err := readMetric(ctx, c.base, c.metric)
	b.report.Checks = append(b.report.Checks, report.Check{Name: "clicks of " + c.name, Want: c.want, Got: int64(got)})
	return err
}

func ready(ctx context.Context, base string) error { return answers(ctx, base+"/readyz") }

// answers returns nil if a GET is answered with 200.
func answers(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	return nil
}

// freeAddrs returns n loopback addresses that nothing listened on a moment ago.
func freeAddrs(n int) (addrs []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find free port: %w", err)
		}
		defer l.Close() // after all were found: no two are the same
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

// listening returns nil if something accepts connections.
func listening(ctx context.Context, addr string) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return c.Close()
}
