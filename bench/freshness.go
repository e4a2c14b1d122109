package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"linkstream/bench/load"
	"linkstream/bench/report"
	"linkstream/schema"
)

const (
	probes     = schema.PageSize       // links that are clicked to see when: the newest, so all stand on the first page
	probeEvery = 10 * time.Millisecond // that page is read: a time is measured too long by up to so much
	// maxProbePause is longer than clicks wait for others to be stored with. Without a pause each probe would be clicked
	// just after a batch was stored, and always wait for the whole of the next one.
	maxProbePause = 500 * time.Millisecond
)

// runFreshness measures the time from a redirect to its click in the list of links, which shows the same counts as the
// statistics, while visitors come at half of the service's ceiling.
func runFreshness(ctx context.Context, b *bench) error {
	links := newLinkSet(b.cfg.Links + probes)
	service, err := b.open(ctx, links)
	if err != nil {
		return err
	}
	crowd := newCrowd(links, b.cfg.Links)
	whole := b.visitedService(service, crowd)
	if err := b.rounds(ctx, "redirect", []*subject{whole}); err != nil {
		return err
	}
	rate, all, p := b.rate("redirect", []*subject{whole}), load.NewHistogram(), newProber(service, crowd)
	for round := range b.cfg.Rounds {
		o, err := b.probe(ctx, p, whole, rate)
		if err != nil {
			return err
		}
		for _, q := range []float64{50, 90, 99} { // a round has some hundred probes
			b.report.Add(fmt.Sprintf("freshness p%v", q), "ms", report.Lower, millis(p.times.ValueAtPercentile(q)))
		}
		b.addCPU("CPU of a redirect, open loop", []*subject{whole}, []outcome{o})
		all.Merge(p.times)
		b.say("round %d of %d: %.0f redirects/s, freshness of %d clicks p50 %.0f ms, p99 %.0f ms", round+1, b.cfg.Rounds, rate,
			p.times.TotalCount(), millis(p.times.ValueAtPercentile(50)), millis(p.times.ValueAtPercentile(99)))
	}
	if err := b.report.AddLatency(fmt.Sprintf("from a redirect to its click in the list, %.0f/s", rate), all); err != nil {
		return err
	}
	return b.verify(ctx, service, crowd)
}

// probe has the prober work for one round of an open loop.
func (b *bench) probe(ctx context.Context, p *prober, s *subject, rate float64) (outcome, error) {
	return measureOnce(ctx, s, func(ctx context.Context) (load.Result, error) {
		probing, stop := context.WithCancel(ctx)
		defer stop()
		var probed sync.WaitGroup
		var failed error
		probed.Go(func() { failed = p.run(ctx, probing.Done()) })
		result, err := load.Open(ctx, s.target, rate, b.cfg.Duration/time.Duration(b.cfg.Rounds))
		stop()
		probed.Wait()
		result.Answers += p.times.TotalCount()
		return result, errors.Join(err, failed)
	})
}

// prober clicks links that nobody else does, and sees in the list when the clicks have arrived.
type prober struct {
	service *runningService
	crowd   *crowd
	client  *http.Client
	times   *hdrhistogram.Histogram // of the last run, in nanoseconds
	probes  []probe
}

// probe is a link that is clicked again and again, at most one click under way.
type probe struct {
	link     int
	clicks   int64     // so far
	answered time.Time // when the last click was redirected; zero once it was in the list
	next     time.Time // when to click again
}

func newProber(s *runningService, c *crowd) *prober {
	p := &prober{service: s, crowd: c, client: &http.Client{Timeout: callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	for i := range probes {
		p.probes = append(p.probes, probe{link: c.visited + i})
	}
	return p
}

// run clicks until stop is closed, and then waits for the clicks under way: leaving them out would leave out the late.
func (p *prober) run(ctx context.Context, stop <-chan struct{}) error {
	p.times = load.NewHistogram()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for clicking := true; ; <-tick.C {
		select {
		case <-stop:
			clicking = false
		default:
		}
		waiting, err := p.look(ctx)
		if err != nil || waiting == 0 && !clicking {
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

// look reads the list, and returns how many clicks are not in it yet.
func (p *prober) look(ctx context.Context) (waiting int, err error) {
	page, err := p.service.api.links(ctx, 1)
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
		case listed[p.crowd.links.hash(probe.link)] >= probe.clicks:
			_ = p.times.RecordValue(min(int64(now.Sub(probe.answered)), p.times.HighestTrackableValue())) // fails beyond that
			probe.answered = time.Time{}
			probe.next = now.Add(rand.N(maxProbePause))
		default:
			waiting++
		}
	}
	return waiting, nil
}

func (p *prober) click(ctx context.Context, probe *probe) error {
	url := "http://" + p.service.edge + "/" + p.crowd.links.hash(probe.link)
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
	p.crowd.clicks[probe.link].Add(1)
	probe.clicks++
	probe.answered = time.Now()
	return nil
}
