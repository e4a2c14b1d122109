package scenario

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	randv2 "math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"linkstream/bench/load"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

const (
	abuseFrom      = "127.0.0.2" // attackers do not share the address of their victims
	abuseLead      = 200 * time.Millisecond
	visitRate      = 2000 // redirects per second of links that exist
	visitConns     = 32
	shortenRate    = 50 // links per second that are created with a good token
	readRate       = 20 // statistics, lists and reports per second, each
	apiConns       = 8  // of each kind of call
	bodyBytes      = 60 << 10
	anonymousConns = 512
	calmCall       = 50 * time.Millisecond // longest time of a call of a calm service
	calmCalls      = 5                     // quick calls in a row
	calmTimeout    = 30 * time.Second
	leastWindow    = 250 * time.Millisecond
	readers        = 20 // heavy reads of one account at the same time
	sharedReports  = 90 // of that account
	bigAccount     = 3  // times -links and -clicks, of the account with heavy reads
	// readGap is how long a slow reader waits between parts of a file: the service drops readers that are slower.
	readGap = 100 * time.Millisecond
	// sendGap is the time between bytes of an upload, whose header has to arrive within 10 s.
	sendGap    = 5 * time.Millisecond
	sharedRate = 5 // pages of a link's shared report per second: a network may ask for 10
)

// attack is a flood with a name.
type attack struct {
	name string
	load.Flood
}

// attacks returns the floods of anybody who may connect. victim is a link.
func attacks(s *system.Service, victim string) []attack {
	edge, api := s.Edge, s.API.Addr()
	post := func(path, contentType string, header, body func() string) func([]byte) []byte {
		return func(dst []byte) []byte {
			text := body()
			return fmt.Appendf(dst, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s",
				path, api, contentType, header(), len(text), text)
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
		{"sign-in", load.Flood{Addr: api, Conns: anonymousConns, Pipeline: 1,
			Request: post("/dashboard/sign-in", form, noHeader, account)}},
		{"sign-in from many networks", load.Flood{Addr: api, From: system.ProxyAddr, Conns: anonymousConns, Pipeline: 1,
			Request: post("/dashboard/sign-in", form, network, account)}},
		{"sign-up", load.Flood{Addr: api, Conns: anonymousConns, Pipeline: 1,
			Request: post("/dashboard/sign-up", form, noHeader, account)}},
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
		{"combinations of names", load.Flood{Addr: edge, Conns: 16, Pipeline: 16, Rate: 5000,
			Request: combinations(edge, victim)}},
		{"idle connections", load.Flood{Addr: edge, Conns: 2000}},
		{"handshakes", load.Flood{Addr: s.EdgeTLS, Conns: 256, Pipeline: 1, Once: true, Request: handshake}},
		{"handshakes from many networks", load.Flood{Addr: s.EdgeTLS, Spread: true, Conns: 256, Pipeline: 1, Once: true,
			Request: handshake}},
		{"silent handshakes", load.Flood{Addr: s.EdgeTLS, Spread: true, Conns: 2000}},
		{"slow senders", load.Flood{Addr: edge, Conns: 500, Pipeline: 1, ByteGap: 50 * time.Millisecond,
			Request: get("GET /%s HTTP/1.1\r\nHost: "+edge+"\r\n\r\n", hash)}},
	}
}

// get returns requests of a format whose parts are made for each request.
func get(format string, args ...func() string) func([]byte) []byte {
	return func(dst []byte) []byte {
		texts := make([]any, len(args))
		for i, arg := range args {
			texts[i] = arg()
		}
		return fmt.Appendf(dst, format, texts...)
	}
}

// combinations returns visits of a link, hardly two of which have the same referrer, language and agent.
func combinations(edge, victim string) func([]byte) []byte {
	visits, agents := new(atomic.Int64), load.Visitors(20, 1)
	return func(dst []byte) []byte {
		n := visits.Add(1)
		return fmt.Appendf(dst, "GET /%s HTTP/1.1\r\nHost: %s\r\nReferer: https://r%d.example/\r\nAccept-Language: "+
			"%c%c\r\nUser-Agent: %s\r\n\r\n",
			victim, edge, n%990, 'a'+rune(n%26), 'a'+rune(n/26%26), agents[n%int64(len(agents))].UserAgent)
	}
}

// heavyReads returns the calls that the owner of an account with many links may make at the same time, and the readers
// of its shared reports. hash is one of its links, and upload appends an upload of it.
func heavyReads(owner *system.API, hash string, shares []string, upload func(dst []byte) []byte) []attack {
	read := func(path string) load.Flood {
		return load.Flood{Addr: owner.Addr(), Conns: readers, Pipeline: 1, Request: func(dst []byte) []byte {
			return owner.AppendRequest(dst, http.MethodGet, path, nil)
		}}
	}
	return []attack{
		{"reports of one account", read("/api/v1/report" + wholeMonth(time.Now().UTC().AddDate(-1, 0, 1)) + "&limit=1000")},
		{"searches of one account", read("/api/v1/links?q=articles%2F2026")},
		{"QR codes of one account", read("/api/v1/links/" + hash + "/qr?format=png&size=2048")},
		{"shared reports of one account", load.Flood{Addr: owner.Addr(), From: system.ProxyAddr, Conns: readers, Pipeline: 1,
			Request: func(dst []byte) []byte {
				return fmt.Appendf(dst, "GET %s?browser=%s HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: %s\r\n\r\n",
					shares[randv2.IntN(len(shares))], rand.Text(), owner.Addr(), randomNetwork())
			}}},
		{"slow exports of one account", load.Flood{Addr: owner.Addr(), Conns: readers, Pipeline: 1,
			ReadGap: readGap, Request: owner.AppendExport}},
		{"slow uploads of one account", load.Flood{Addr: owner.Addr(), Conns: readers, Pipeline: 1,
			ByteGap: sendGap, Request: upload}},
	}
}

// randomNetwork returns an address in a /48 that no other call returns.
func randomNetwork() string {
	addr := [16]byte{0: 0x20, 15: 1}
	_, _ = rand.Read(addr[1:6]) // never fails
	return netip.AddrFrom16(addr).String()
}

// runAbuse measures the latency that visitors and clients of the API see while somebody floods the service. Each attack
// is compared with a quiet time just before it.
func runAbuse(ctx context.Context, r *run) error {
	if !r.cfg.System.Start {
		return errors.New("abuse: add -start, as attacks are not for a service that others use")
	}
	known := append(attacks(&system.Service{API: new(system.API)}, ""), heavyReads(new(system.API), "", nil, nil)...)
	if _, err := chooseAttacks(known, r.cfg.Attacks); err != nil {
		return err // before anything is started
	}
	cert, err := system.NewCertificate(r.group)
	if err != nil {
		return err
	}
	r.launcher.ServeTLS(cert)
	visits := r.visits(workload.NewLinks(r.cfg.Links), r.cfg.Links)
	var big system.Catalogue
	service, err := r.open(ctx, visits.Links, func(ctx context.Context, on system.Engines) (err error) {
		big, err = r.fillBigAccount(ctx, on)
		return err
	})
	if err != nil {
		return err
	}
	victim := strings.ToLower(rand.Text()[:12])
	if err := service.API.Shorten(ctx, victim, workload.BareURL); err != nil {
		return err
	}
	owner, shares := service.API.Of(big), make([]string, sharedReports)
	for i := range shares {
		if shares[i], err = owner.Share(ctx, "{}"); err != nil {
			return err
		}
	}
	upload, err := owner.Upload(ctx)
	if err != nil {
		return err
	}
	shared, err := service.API.Share(ctx, fmt.Sprintf(`{"hash":%q}`, visits.Links.Hash(0)))
	if err != nil {
		return err
	}
	all := append(attacks(service, victim), heavyReads(owner, big.Links.Hash(0), shares, upload)...)
	chosen, err := chooseAttacks(all, r.cfg.Attacks)
	if err != nil {
		return err
	}
	victims := victimsOf(service, visits, shared)
	if _, err := load.Closed(ctx, victims[0].target, r.cfg.Round); err != nil { // each link once, so that all are cached
		return err
	}
	for round := range r.cfg.Rounds {
		for _, a := range chosen {
			err := errors.Join(awaitCalm(ctx, service.API), r.attack(ctx, victims, a))
			if err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, a.name, err)
			}
		}
	}
	service.Counted = nil // has the clicks of the attack as well
	return r.verify(ctx, service, visits)
}

// fillBigAccount creates another account, with many links and clicks, for heavy reads.
func (r *run) fillBigAccount(ctx context.Context, on system.Engines) (system.Catalogue, error) {
	big, err := system.CreateCatalogue(ctx, on, int64(r.cfg.Links)+1, workload.NewLinks(bigAccount*r.cfg.Links))
	if err != nil {
		return big, err
	}
	many := workload.NewHistory(big.Links, 0)
	many.AccountID, many.FirstID = big.Account, big.FirstID
	return big, r.store(ctx, on, many, bigAccount*r.cfg.Clicks)
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

// victim is a load of somebody who does nothing wrong.
type victim struct {
	op      string
	target  load.Target
	rate    float64
	refused *atomic.Int64 // calls with another status than the good one
}

// victimsOf returns visitors, clients of the API, and the readers of a shared report.
func victimsOf(s *system.Service, visits *workload.Visits, shared string) []victim {
	all := []victim{{op: "redirect", rate: visitRate, refused: new(atomic.Int64),
		target: load.Target{Addr: s.Edge, Conns: visitConns, Source: visits.Counted(s.Edge)}}}
	add := func(op string, rate float64, status int, request func(dst []byte) []byte) {
		v := victim{op: op, rate: rate, refused: new(atomic.Int64)}
		v.target = load.Target{Addr: s.API.Addr(), Conns: apiConns, Source: func(int) load.Source {
			return &victimCall{request, status, v.refused}
		}}
		all = append(all, v)
	}
	read := func(op, path string) {
		add(op, readRate, http.StatusOK, func(dst []byte) []byte {
			return s.API.AppendRequest(dst, http.MethodGet, path, nil)
		})
	}
	add("shorten", shortenRate, http.StatusCreated, func(dst []byte) []byte {
		return s.API.AppendRequest(dst, http.MethodPost, "/api/v1/shorten",
			fmt.Appendf(nil, `{"long_url": %q}`, workload.UniqueURL(time.Now().UnixNano())))
	})
	hash := visits.Links.Hash(0)
	read("stats", "/api/v1/stats/"+hash)
	read("list", "/api/v1/links")
	read("report", "/api/v1/links/"+hash+"/report"+wholeMonth(time.Now().UTC().AddDate(0, 0, -30)))
	add("shared report", sharedRate, http.StatusOK, get("GET "+shared+"?browser=%s HTTP/1.1\r\nHost: "+s.API.Addr()+
		"\r\n\r\n", func() string { return rand.Text() }))
	return all
}

// victimCall is the calls of one connection. A refusal is counted, and does not end the load.
type victimCall struct {
	request func(dst []byte) []byte
	status  int
	refused *atomic.Int64
}

// Append implements load.Source.
func (v *victimCall) Append(dst []byte) []byte { return v.request(dst) }

// Check implements load.Source.
func (v *victimCall) Check(a load.Answer) error {
	if a.Status != v.status {
		v.refused.Add(1)
	}
	return nil
}

// visit loads the service with all victims for a while, and returns the result of each.
func visit(ctx context.Context, victims []victim, window time.Duration) ([]load.Result, error) {
	results := make([]load.Result, len(victims))
	group, ctx := errgroup.WithContext(ctx)
	for i, v := range victims {
		v.refused.Store(0)
		group.Go(func() (err error) {
			results[i], err = load.Open(ctx, v.target, v.rate, window)
			return err
		})
	}
	return results, group.Wait()
}

// awaitCalm waits until the service has finished the work of the last attack, or until calmTimeout.
func awaitCalm(ctx context.Context, api *system.API) error {
	for began, calls := time.Now(), 0; calls < calmCalls && time.Since(began) < calmTimeout; calls++ {
		called := time.Now()
		if _, err := api.Links(ctx, 1); err != nil || time.Since(called) > calmCall {
			calls = -1
			time.Sleep(calmCall)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// attack measures a quiet time and then an attack.
func (r *run) attack(ctx context.Context, victims []victim, a attack) error {
	defer r.watch()()
	window := max(r.cfg.Round/2, leastWindow)
	quiet, err := visit(ctx, victims, window)
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
	during, err := visit(ctx, victims, window)
	stop()
	done, lasted := <-harm, time.Since(began).Seconds()
	if err != nil {
		return err
	}
	for i, v := range victims {
		p := 99.0
		before, then := quiet[i].Latency.ValueAtPercentile(p), during[i].Latency.ValueAtPercentile(p)
		name := v.op + " latency p99"
		r.Add(name, "quiet, before "+a.name, "ms", millis(before))
		r.Add(name, a.name, "ms", millis(then))
		r.Add(name, a.name+" / quiet", "ratio", float64(then)/float64(before))
		r.Add(v.op+" calls refused", a.name, "%", 100*float64(v.refused.Load())/float64(max(1, during[i].Answers)))
		if n := during[i].Unsent; n > 0 {
			r.Add(v.op+" calls due but not sent", a.name, "", float64(n))
		}
		r.logf("%s: %s %.2f ms, quiet %.2f ms, %d of %d refused", a.name, name, millis(then), millis(before),
			v.refused.Load(), during[i].Answers)
	}
	r.Add("connections of the attack", a.name, "1/s", float64(done.Connections)/lasted)
	if done.Answers > 0 {
		r.Add("answers to the attack", a.name, "1/s", float64(done.Answers)/lasted)
	}
	return nil
}
