package system

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"linkstream/bench/proc"
	"linkstream/bench/workload"
)

const (
	// maxCreated is the largest number of links that are created through the API of a running system.
	maxCreated   = 20_000
	startTimeout = time.Minute // of a system, until it is ready

	// ProxyAddr is the local address from which a started api takes X-Forwarded-For, so that a load can come from many
	// networks.
	ProxyAddr = "127.0.0.3"
)

// Service is the system under test.
type Service struct {
	Name string
	Edge string // host:port
	// EdgeTLS is the address of a started edge for HTTPS, if it has one.
	EdgeTLS string
	API     *API
	// AtEdge and AtAPI are the processes that work for visitors and for API clients, first the one that answers. If the
	// system was running before, they are the processes that answer, and the fields below are unknown.
	AtEdge, AtAPI []proc.Process
	Counted       *Counter // clicks in the store
	Engines       Engines
	// Processes are all processes of a started system, engines included.
	Processes []proc.Process

	ops      operators
	children []*proc.Child // in the order of their start
}

// operators are the addresses, host:port, on which the services serve readiness and metrics. Services in one process
// share an address.
type operators struct{ edge, api, ingest string }

// newService returns a service with addresses and without processes. The services run in one process or in three.
func newService(name string, oneProcess bool) (*Service, error) {
	addrs, err := FreeAddrs(6)
	if err != nil {
		return nil, err
	}
	ops := operators{addrs[2], addrs[3], addrs[4]}
	if oneProcess {
		ops = operators{addrs[2], addrs[2], addrs[2]}
	}
	return &Service{Name: name, Edge: addrs[0], EdgeTLS: addrs[5], API: &API{base: "http://" + addrs[1]}, ops: ops,
		Counted: &Counter{Name: name, Base: "http://" + ops.ingest, Metric: "linkstream_ingest_clicks_counted_total"}}, nil
}

// await returns when all parts of a started service are ready.
func (s *Service) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, child := range s.children { // any of them may fail
		err := child.Await(ctx, func(ctx context.Context) error {
			for _, addr := range []string{s.ops.edge, s.ops.api, s.ops.ingest} {
				if err := Answers(ctx, "http://"+addr+"/readyz"); err != nil {
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

// Probe returns an error if a running system does not answer, or does not accept one of the tokens.
func (l *Launcher) Probe(ctx context.Context) error {
	secrets := l.secrets()
	if len(secrets) == 0 {
		return errors.New("-token: name a token of the running service, or add -start")
	}
	if err := Answers(ctx, l.cfg.Edge+"/robots.txt"); err != nil {
		return fmt.Errorf("-edge: %w", err)
	}
	for i, secret := range secrets {
		if _, err := (&API{base: l.cfg.API, tokens: &tokens{secrets: []string{secret}}}).Links(ctx, 1); err != nil {
			return fmt.Errorf("-api, -token: token %d of %d: %w", i+1, len(secrets), err)
		}
	}
	return nil
}

// secrets returns the tokens of a running system.
func (l *Launcher) secrets() []string {
	return strings.FieldsFunc(l.cfg.Tokens, func(r rune) bool { return r == ',' })
}

// find creates the links through the API of a running system. When the group closes, all links of the run are deleted.
func (l *Launcher) find(ctx context.Context, links workload.Links) (*Service, error) {
	s := &Service{Name: "running service", Edge: strings.TrimPrefix(l.cfg.Edge, "http://"), API: &API{base: l.cfg.API}}
	s.API.tokens, s.API.Quota = &tokens{secrets: l.secrets()}, float64(len(l.secrets()))*tokenRate
	if links.Count > maxCreated {
		return nil, fmt.Errorf("-links: at most %d in a running service", maxCreated)
	}
	for _, at := range []struct {
		addr      string
		processes *[]proc.Process
	}{{s.Edge, &s.AtEdge}, {s.API.Addr(), &s.AtAPI}} {
		if process, err := proc.Listening(s.Name, at.addr); err != nil {
			l.progress("%s: without CPU time: %v", s.Name, err)
		} else {
			*at.processes = []proc.Process{process}
		}
	}
	l.group.OnClose(func() error {
		l.progress("deleting %d links", len(s.API.made))
		return s.API.deleteMade()
	})
	l.progress("creating %d links through the API", links.Count)
	return s, s.API.create(ctx, links)
}

// Answers returns nil if a GET request to url is answered with status 200.
func Answers(ctx context.Context, url string) error {
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

// FreeAddrs returns n loopback addresses on which nothing listens.
func FreeAddrs(n int) (addrs []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find free port: %w", err)
		}
		defer l.Close() // after the loop, so that all addresses differ
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}
