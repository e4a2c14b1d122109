package scenario

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"linkstream/bench/load"
	"linkstream/bench/report"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

const (
	abuse = "abuse"

	abuseFrom      = "127.0.0.2" // attackers have an address of their own, as they do not share their victims'
	abuseLead      = 200 * time.Millisecond
	visitRate      = 2000 // redirects per second of links that exist
	visitConns     = 32
	shortenRate    = 50 // links per second that are created with a good token
	shortenConns   = 8
	bodyBytes      = 60 << 10
	anonymousConns = 512
)

// attack is a flood and what it is called.
type attack struct {
	name string
	load.Flood
}

// attacks returns what anybody can do who may connect. victim is a link that exists.
func attacks(s *system.Service, victim string) []attack {
	edge, api := s.Edge, s.API.Addr()
	post := func(path, contentType string, header, body func() string) func([]byte) []byte {
		return func(dst []byte) []byte {
			text := body()
			return fmt.Appendf(dst, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s",
				path, api, contentType, header(), len(text), text)
		}
	}
	get := func(format string, args ...func() string) func([]byte) []byte {
		return func(dst []byte) []byte {
			texts := make([]any, len(args))
			for i, arg := range args {
				texts[i] = arg()
			}
			return fmt.Appendf(dst, format, texts...)
		}
	}
	const form = "application/x-www-form-urlencoded"
	account := func() string { return "email=" + rand.Text() + "%40example.com&password=" + rand.Text() }
	noHeader := func() string { return "" }
	network := func() string { return "X-Forwarded-For: " + randomNetwork() + "\r\n" }
	badToken := func() string { return "Authorization: Bearer ls_" + rand.Text() + rand.Text() + "\r\n" }
	hash := func() string { return rand.Text()[:7] }
	large := strings.Repeat("a", bodyBytes)
	hello := load.ClientHello(system.ClientTLS())
	handshake := func(dst []byte) []byte { return append(dst, hello...) }
	return []attack{
		{"sign-in", load.Flood{Addr: api, Conns: anonymousConns, Pipeline: 1, Request: post("/dashboard/sign-in", form, noHeader, account)}},
		{"sign-in from many networks", load.Flood{Addr: api, From: system.ProxyAddr, Conns: anonymousConns, Pipeline: 1,
			Request: post("/dashboard/sign-in", form, network, account)}},
		{"sign-up", load.Flood{Addr: api, Conns: anonymousConns, Pipeline: 1, Request: post("/dashboard/sign-up", form, noHeader, account)}},
		{"bad tokens", load.Flood{Addr: api, Conns: anonymousConns, Pipeline: 1,
			Request: get("GET /api/v1/links HTTP/1.1\r\nHost: "+api+"\r\n%s\r\n", badToken)}},
		{"no token", load.Flood{Addr: api, Conns: anonymousConns, Pipeline: 1,
			Request: get("GET /api/v1/links HTTP/1.1\r\nHost: " + api + "\r\n\r\n")}},
		{"sign-in page", load.Flood{Addr: api, Conns: anonymousConns, Pipeline: 1,
			Request: get("GET /dashboard/sign-in HTTP/1.1\r\nHost: " + api + "\r\n\r\n")}},
		{"unknown paths", load.Flood{Addr: api, Conns: anonymousConns, Pipeline: 1,
			Request: get("GET /%s HTTP/1.1\r\nHost: "+api+"\r\n\r\n", hash)}},
		{"big bodies", load.Flood{Addr: api, Conns: 64, Pipeline: 1, Request: post("/api/v1/shorten", "application/json",
			badToken, func() string { return large })}},
		{"unknown hashes", load.Flood{Addr: edge, Conns: 64, Pipeline: 16, Rate: 20_000,
			Request: get("GET /%s HTTP/1.1\r\nHost: "+edge+"\r\n\r\n", hash)}},
		{"random hosts", load.Flood{Addr: edge, Conns: 64, Pipeline: 16, Rate: 20_000,
			Request: get("GET /abc HTTP/1.1\r\nHost: %s.example.com\r\n\r\n", hash)}},
		{"pages about links", load.Flood{Addr: edge, Conns: 64, Pipeline: 16, Rate: 20_000,
			Request: get("GET /" + victim + "+ HTTP/1.1\r\nHost: " + edge + "\r\n\r\n")}},
		{"random referrers", load.Flood{Addr: edge, Conns: 16, Pipeline: 16, Rate: 5000, Request: get("GET /"+victim+
			" HTTP/1.1\r\nHost: "+edge+"\r\nReferer: https://%s.example/\r\n\r\n", hash)}},
		{"idle connections", load.Flood{Addr: edge, Conns: 2000}},
		{"handshakes", load.Flood{Addr: s.EdgeTLS, Conns: 256, Pipeline: 1, Once: true, Request: handshake}},
		{"handshakes from many networks", load.Flood{Addr: s.EdgeTLS, Spread: true, Conns: 256, Pipeline: 1, Once: true, Request: handshake}},
		{"silent handshakes", load.Flood{Addr: s.EdgeTLS, Spread: true, Conns: 2000}},
		{"slow senders", load.Flood{Addr: edge, Conns: 500, Pipeline: 1, ByteGap: 50 * time.Millisecond,
			Request: get("GET /%s HTTP/1.1\r\nHost: "+edge+"\r\n\r\n", hash)}},
	}
}

// randomNetwork returns an address in a /48 that no other call returns.
func randomNetwork() string {
	addr := [16]byte{0: 0x20, 15: 1}
	_, _ = rand.Read(addr[1:6]) // never fails
	return netip.AddrFrom16(addr).String()
}

// runAbuse measures what visitors and clients of the API notice while somebody floods the service: each attack beside a
// quiet time just before it.
func runAbuse(ctx context.Context, r *run) error {
	if !r.cfg.System.Start {
		return errors.New("abuse: add -start, as attacks are not for a service that others use")
	}
	if _, err := chooseAttacks(attacks(&system.Service{API: &system.API{}}, ""), r.cfg.Attacks); err != nil {
		return err // before anything is started
	}
	cert, err := system.NewCertificate(r.group)
	if err != nil {
		return err
	}
	r.launcher.ServeTLS(cert)
	visits := workload.NewVisits(workload.NewLinks(r.cfg.Links), r.cfg.Links)
	service, err := r.open(ctx, visits.Links)
	if err != nil {
		return err
	}
	victim := strings.ToLower(rand.Text()[:12])
	if err := service.API.Shorten(ctx, victim, workload.BareURL); err != nil {
		return err
	}
	l := newLiveLoad(service, visits)
	if _, err := load.Closed(ctx, l.visits, r.cfg.Round); err != nil { // each link once, so that all are cached
		return err
	}
	chosen, err := chooseAttacks(attacks(service, victim), r.cfg.Attacks)
	if err != nil {
		return err
	}
	for round := range r.cfg.Rounds {
		for _, a := range chosen {
			if err := r.attack(ctx, l, a); err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, a.name, err)
			}
		}
	}
	service.Counted = nil // has the clicks of the attack as well
	return r.verify(ctx, service, visits)
}

// chooseAttacks returns the attacks that names lists, separated by commas, or all if names is empty.
func chooseAttacks(all []attack, names string) ([]attack, error) {
	if names == "" {
		return all, nil
	}
	var chosen []attack
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(a attack) bool { return a.name == strings.TrimSpace(name) })
		if i < 0 {
			known := make([]string, len(all))
			for k, a := range all {
				known[k] = a.name
			}
			return nil, fmt.Errorf("-attacks: %q is not one of %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// attack measures a quiet time and then an attack.
func (r *run) attack(ctx context.Context, l *liveLoad, a attack) error {
	window := r.cfg.Round / 2
	visited, created, err := l.run(ctx, window)
	if err != nil {
		return fmt.Errorf("before: %w", err)
	}
	a.From = cmp.Or(a.From, abuseFrom)
	attacking, stop := context.WithCancel(ctx)
	defer stop()
	harm := make(chan load.Harm, 1)
	began := time.Now()
	go func() { harm <- a.Run(attacking) }()
	time.Sleep(abuseLead)
	visitedThen, createdThen, err := l.run(ctx, window)
	stop()
	done, lasted := <-harm, time.Since(began).Seconds()
	if err != nil {
		return err
	}
	add := func(op string, p float64, quiet, then *hdrhistogram.Histogram) {
		before, during := quiet.ValueAtPercentile(p), then.ValueAtPercentile(p)
		name := fmt.Sprintf("%s latency p%v", op, p)
		r.report.Add(name+": before "+a.name, "ms", report.Lower, millis(before))
		r.report.Add(name+": "+a.name, "ms", report.Lower, millis(during))
		r.report.Add(fmt.Sprintf("%s: %s / quiet", name, a.name), "ratio", report.Lower, float64(during)/float64(before))
		r.logf("%s: %s %.2f ms, quiet %.2f ms", a.name, name, millis(during), millis(before))
	}
	add("redirect", 50, visited, visitedThen)
	add("redirect", 99, visited, visitedThen)
	add("shorten", 50, created, createdThen)
	r.report.Add("connections per second of the attack: "+a.name, "1/s", report.Higher, float64(done.Connections)/lasted)
	if done.Answers > 0 {
		r.report.Add("answers per second to the attack: "+a.name, "1/s", report.Higher, float64(done.Answers)/lasted)
	}
	return nil
}

// liveLoad is visitors and a client of the API, who do nothing wrong.
type liveLoad struct{ visits, shorten load.Target }

func newLiveLoad(s *system.Service, visits *workload.Visits) *liveLoad {
	visited := load.Target{Addr: s.Edge, Conns: visitConns, Source: visits.Counted(s.Edge)}
	shorten := load.Target{Addr: s.API.Addr(), Conns: shortenConns, Source: func(int) load.Source {
		return &shortenRequest{api: s.API, created: new(atomic.Int64)}
	}}
	visited.Done, shorten.Done = new(atomic.Int64), new(atomic.Int64)
	return &liveLoad{visited, shorten}
}

// run returns the latencies of a while.
func (l *liveLoad) run(ctx context.Context, window time.Duration) (visited, created *hdrhistogram.Histogram, err error) {
	var visits, links load.Result
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		visits, err = load.Open(ctx, l.visits, visitRate, window)
		return err
	})
	group.Go(func() (err error) {
		links, err = load.Open(ctx, l.shorten, shortenRate, window)
		return err
	})
	err = group.Wait()
	return visits.Latency, links.Latency, err
}
