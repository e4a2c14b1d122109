package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/system"
	"linkstream/bench/workload"
	"linkstream/schema"
)

const (
	probes       = schema.PageSize       // links that are probed: the newest ones, which are all on the first page
	probePoll    = 10 * time.Millisecond // interval of reading that page; a measured time is too long by at most this
	probeTimeout = 30 * time.Second
	// maxProbePause is longer than a click waits in a batch. Without a pause, each probe would be clicked just after a
	// batch was stored, and would always wait for the whole of the next one.
	maxProbePause = 500 * time.Millisecond
)

// measureFreshness measures the time from a redirect until its click is in the list of links, which shows the same
// counts as the statistics, while visitors come at half of the rate of the closed loop.
func (r *run) measureFreshness(ctx context.Context, service *system.Service, visits *workload.Visits) error {
	whole := []*contender.Contender{contender.Visited(service, visits, r.load(false))}
	if err := r.closedLoop(ctx, "redirect", whole); err != nil {
		return err
	}
	rate, all, p := r.openRates("redirect", whole)[0], load.NewHistogram(), newProber(service, visits)
	for round := range r.cfg.Rounds {
		o, err := r.probe(ctx, p, whole[0], rate)
		if err != nil {
			return err
		}
		for _, q := range []float64{50, 90, 99} { // a round has a few hundred probes
			r.Add(fmt.Sprintf("freshness p%v", q), service.Name, "ms", millis(p.times.ValueAtPercentile(q)))
		}
		r.addCPU(rate, cpuMetric("redirect")+openLoop, whole, []contender.Outcome{o})
		all.Merge(p.times)
		r.logf("%s: %.0f redirects/s, freshness of %d clicks: p50 %.0f ms, p99 %.0f ms", r.roundName(round+1), rate,
			p.times.TotalCount(), millis(p.times.ValueAtPercentile(50)), millis(p.times.ValueAtPercentile(99)))
	}
	r.AddLatency("redirect", "from a redirect until its click is in the list", rate, all)
	return nil
}

// probe runs the prober during one round of an open loop.
func (r *run) probe(ctx context.Context, p *prober, c *contender.Contender, rate float64) (contender.Outcome, error) {
	return r.round(ctx, c, func(ctx context.Context) (load.Result, error) {
		probing, stop := context.WithCancel(ctx)
		defer stop()
		var probed sync.WaitGroup
		var failed error
		probed.Go(func() { failed = p.run(ctx, probing.Done()) })
		result, err := load.Open(ctx, c.Target, rate, r.cfg.Duration)
		stop()
		probed.Wait()
		result.Answers += p.times.TotalCount()
		return result, errors.Join(err, failed)
	})
}

// prober clicks links that nobody else visits, and waits until the clicks are in the list.
type prober struct {
	service *system.Service
	visits  *workload.Visits
	client  *http.Client
	times   *hdrhistogram.Histogram // of the last run, in nanoseconds
	probes  []probe
}

// probe is a link that is clicked repeatedly. At most one of its clicks is pending.
type probe struct {
	link     int
	clicks   int64     // so far
	answered time.Time // when the last click was redirected; zero once it is in the list
	next     time.Time // when to click again
}

func newProber(s *system.Service, visits *workload.Visits) *prober {
	p := &prober{service: s, visits: visits, client: &http.Client{Timeout: probeTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	for i := range probes {
		p.probes = append(p.probes, probe{link: visits.Visited + i})
	}
	return p
}

// run clicks until stop is closed, and then waits for the pending clicks: without them, the slowest would be missing.
func (p *prober) run(ctx context.Context, stop <-chan struct{}) error {
	p.times = load.NewHistogram()
	tick := time.NewTicker(probePoll)
	defer tick.Stop()
	for clicking := true; ; <-tick.C {
		select {
		case <-stop:
			clicking = false
		default:
		}
		pending, err := p.readList(ctx)
		if err != nil || pending == 0 && !clicking {
			return err
		}
		for i := range p.probes {
			probe := &p.probes[i]
			if !clicking || !probe.answered.IsZero() || time.Now().Before(probe.next) {
				continue
			}
			if err := p.click(ctx, probe); err != nil {
				return err
			}
		}
	}
}

// readList records the clicks that have appeared in the list, and returns the number of clicks that have not.
func (p *prober) readList(ctx context.Context) (pending int, err error) {
	page, err := p.service.API.Links(ctx, 1)
	if err != nil {
		return 0, err
	}
	now := time.Now()
	listed := map[string]int64{}
	for _, link := range page.Data {
		listed[link.Hash] = link.Clicks
	}
	for i := range p.probes {
		probe := &p.probes[i]
		switch {
		case probe.answered.IsZero():
		case listed[p.visits.Links.Hash(probe.link)] >= probe.clicks:
			// RecordValue fails only for values above the highest trackable one.
			_ = p.times.RecordValue(min(int64(now.Sub(probe.answered)), p.times.HighestTrackableValue()))
			probe.answered = time.Time{}
			probe.next = now.Add(rand.N(maxProbePause))
		default:
			pending++
		}
	}
	return pending, nil
}

func (p *prober) click(ctx context.Context, probe *probe) error {
	url := "http://" + p.service.Edge + "/" + p.visits.Links.Hash(probe.link)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := p.client.Do(req)
	if err != nil {
		return fmt.Errorf("click a link: %w", err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusFound {
		return fmt.Errorf("click a link: status %s", res.Status)
	}
	p.visits.AddClick(probe.link)
	probe.clicks++
	probe.answered = time.Now()
	return nil
}
