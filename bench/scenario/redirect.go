package scenario

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/report"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

// runRedirect measures redirects on lasting connections.
func runRedirect(ctx context.Context, r *run) error {
	visits := r.visits(workload.NewLinks(r.cfg.Links), r.cfg.Links)
	service, err := r.open(ctx, visits.Links, nil)
	if err != nil {
		return err
	}
	return r.measureRedirects(ctx, service, visits)
}

// runConnections measures redirects on new connections, one per redirect, and by HTTPS.
func runConnections(ctx context.Context, r *run) error {
	visits := r.visits(workload.NewLinks(r.cfg.Links), r.cfg.Links)
	visits.Reconnect = true
	service, err := r.open(ctx, visits.Links, nil)
	if err != nil {
		return err
	}
	if err := r.measureRedirects(ctx, service, visits); err != nil || !r.cfg.System.Start {
		return err
	}
	return r.measureSecure(ctx, service.Engines, visits.Links)
}

// measureRedirects measures the whole service, bare servers and peers and, if the run has started the service, the edge
// alone.
func (r *run) measureRedirects(ctx context.Context, service *system.Service, visits *workload.Visits) error {
	whole := contender.Visited(service, visits, r.load(visits.Reconnect))
	starter := r.starter(service.Engines, visits)
	peers, err := r.peers(starter, false)
	if err != nil {
		return err
	}
	servers, err := bareServers(ctx, starter, nil)
	if err != nil {
		return err
	}
	// The latency of the bare server is the part that the machine has in every latency.
	contenders, open := slices.Concat(servers, peers), append(servers[:1:1], peers...)
	var counters []*system.Counter
	if r.cfg.System.Start {
		starts := []contender.StartEdge{starter.SpoolingEdge}
		if service.Engines.Broker() != nil {
			starts = append(starts, starter.ShippingEdge)
		}
		for _, start := range starts {
			edge, recorded, err := start(ctx)
			if err != nil {
				return err
			}
			contenders, open, counters = append(contenders, edge), append(open, edge), append(counters, recorded)
		}
	}
	idle, err := r.measureIdle(ctx, whole)
	if err != nil {
		return err
	}
	if err := r.closedLoop(ctx, "redirect", append(contenders, whole)); err != nil {
		return err
	}
	if err := r.answer(ctx, whole, idle); err != nil {
		return err
	}
	if err := r.openLoop(ctx, "redirect", append(open, whole)); err != nil {
		return err
	}
	if err := r.checkCounters(ctx, counters...); err != nil {
		return err
	}
	return r.verify(ctx, service, visits)
}

const (
	lowRate  = 1000 // at which the answer has the CPU time
	sloSteps = 5    // of the search for the highest rate: the last one is a 32nd of the highest rate
)

// answer answers what engineers ask: how many redirects per second within the limit of the latency, and how many cores
// at a low rate and without visitors.
func (r *run) answer(ctx context.Context, whole *contender.Contender, idle string) error {
	if err := r.openLoopAt(ctx, "redirect", lowRate, []*contender.Contender{whole}); err != nil {
		return err
	}
	rate, err := r.searchRate(ctx, whole)
	if err != nil {
		return err
	}
	limit := fmt.Sprintf("p%v ≤ %v", r.cfg.SLO.Percentile, r.cfg.SLO.Limit)
	first := fmt.Sprintf("%s: no rate keeps to %s, or rounds are too short to say", whole.Name, limit)
	if rate > 0 {
		achieved := r.At(report.AchievedMetric("redirect"), whole.Name, rate).Median()
		r.Add("redirects per second at "+limit, whole.Name, "1/s", achieved)
		first = fmt.Sprintf("%s: %.0f redirects/s at %s", whole.Name, achieved, limit)
	}
	second := "unknown cores"
	if cores := r.At(report.CoresMetric("redirect"), whole.Name, lowRate); len(cores.Samples) > 0 {
		second = fmt.Sprintf("%.3f cores", cores.Median())
	}
	r.Answer = []string{first, fmt.Sprintf("%s: %s at %d redirects/s", whole.Name, second, lowRate),
		whole.Name + ": idle " + idle}
	return nil
}

// searchRate returns the highest rate at which a contender keeps up within the limit of the latency, by halving, and
// then in the rounds of an open loop; 0 if there is none.
func (r *run) searchRate(ctx context.Context, c *contender.Contender) (float64, error) {
	low, high := 0.0, r.Metric(rateMetric("redirect"), c.Name).Median()
	for range sloSteps {
		rate := (low + high) / 2
		o, err := r.round(ctx, c, func(ctx context.Context) (load.Result, error) { return c.Open(ctx, rate, r.cfg.Duration) })
		if err != nil {
			return 0, err
		}
		if reached := time.Duration(o.Result.Latency.ValueAtPercentile(r.cfg.SLO.Percentile)); o.Rate >= report.Kept*rate &&
			o.Result.Unsent == 0 && reached <= r.cfg.SLO.Limit {
			low = rate
		} else {
			high = rate
		}
		r.logf("search for %v: asked for %.0f, the highest rate is %.0f to %.0f", &r.cfg.SLO, rate, low, high)
	}
	for _, next := range []float64{0.9, 0.7, 0.5, 0.5, 0} { // parts of a rate that does not hold in all rounds
		low = max(1, math.Round(low))
		if err := r.openLoopAt(ctx, "redirect", low, []*contender.Contender{c}); err != nil {
			return 0, err
		}
		within := r.At(report.LatencyMetric("redirect", r.cfg.SLO.Percentile), c.Name, low)
		if len(within.Samples) == 0 {
			return 0, nil
		}
		if !r.Saturated("redirect", c.Name, low) && within.Median() <= millis(r.cfg.SLO.Limit.Nanoseconds()) {
			return low, nil
		}
		low *= next
	}
	return 0, nil
}

// measureIdle measures the CPU time and the memory of a contender without load.
func (r *run) measureIdle(ctx context.Context, c *contender.Contender) (string, error) {
	if len(c.Processes) == 0 {
		return "unknown", nil
	}
	o, err := r.round(ctx, c, func(ctx context.Context) (load.Result, error) {
		waiting, cancel := context.WithTimeout(ctx, r.cfg.Duration)
		defer cancel()
		<-waiting.Done()
		return load.Result{Elapsed: r.cfg.Duration}, ctx.Err()
	})
	var memory float64
	for _, cost := range o.Costs {
		memory += cost.Memory
	}
	r.Add("CPU without load", c.Name, "% of a core", 100*o.Cores)
	return fmt.Sprintf("%.2f %% of a core, %.0f MiB", 100*o.Cores, memory), err
}

// bareServers starts the servers that redirect and do nothing else. All contenders are compared with the first one, and
// with an nginx that has as many workers as an edge has threads. With a certificate they serve HTTPS.
func bareServers(ctx context.Context, starter *contender.Starter,
	cert *system.Certificate) ([]*contender.Contender, error) {
	bare, err := starter.Bare(ctx, cert)
	if err != nil {
		return nil, err
	}
	nginx, err := starter.Nginx(ctx, runtime.NumCPU(), cert)
	if err != nil || nginx == nil {
		return []*contender.Contender{bare}, err
	}
	nginx.Reference = true
	return []*contender.Contender{bare, nginx}, nil
}

// peers returns the configured programs that serve HTTPS, or the ones that serve HTTP.
func (r *run) peers(starter *contender.Starter, secure bool) (all []*contender.Contender, err error) {
	for _, p := range r.cfg.Peers {
		if p.Secure() != secure {
			continue
		}
		c, err := starter.Peer(p)
		if err != nil {
			return nil, err
		}
		c.Reference = true
		for _, process := range c.Processes {
			r.outside = append(r.outside, process.PIDs...)
		}
		all = append(all, c)
	}
	return all, nil
}

// secureLoads are the kinds of visits by HTTPS.
var secureLoads = []struct {
	name              string
	reconnect, resume bool
}{
	{"full TLS handshake", true, false},
	{"resumed TLS session", true, true},
	{"lasting TLS connection", false, false},
}

// measureSecure measures redirects by HTTPS: TLS 1.3, X25519, an ECDSA certificate on P-256.
func (r *run) measureSecure(ctx context.Context, on system.Engines, links workload.Links) error {
	cert, err := system.NewCertificate(r.group)
	if err != nil {
		return err
	}
	starter := r.starter(on, r.visits(links, r.cfg.Links))
	starter.Load.TLS = true
	servers, err := bareServers(ctx, starter, &cert)
	if err != nil {
		return err
	}
	peers, err := r.peers(starter, true)
	if err != nil {
		return err
	}
	edge, recorded, err := starter.SecureEdge(ctx, cert)
	if err != nil {
		return err
	}
	servers = append(append(servers, peers...), edge)
	for _, kind := range secureLoads {
		starter.Visits = r.visits(links, r.cfg.Links)
		starter.Visits.Reconnect = kind.reconnect
		starter.Load.Reconnect, starter.Load.Resume = kind.reconnect, kind.resume
		var contenders []*contender.Contender
		for _, server := range servers {
			contenders = append(contenders, starter.Again(server, kind.name))
		}
		if err := r.closedLoop(ctx, "HTTPS redirect", contenders); err != nil {
			return err
		}
	}
	return r.checkCounters(ctx, recorded)
}
