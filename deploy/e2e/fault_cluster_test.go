package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

const (
	faultLinks  = 5
	errorWithin = 5 * time.Second // for an answer that says that an engine is down

	counterStale    = `linkstream_edge_cache_stale_total{cache="links"}`
	gaugePending    = "linkstream_edge_spool_pending_clicks"
	gaugePartitions = "linkstream_ingest_partitions"
	gaugeLag        = "linkstream_ingest_lag_records"
	counterCounted  = "linkstream_ingest_clicks_counted_total"
)

// losses are the metrics of each service that count lost or discarded clicks, or doubts about the log.
var losses = map[string][]string{
	"edge": {"linkstream_edge_clicks_dropped_total", "linkstream_edge_clicks_refused_total",
		"linkstream_edge_spool_damaged_total"},
	"ingest": {"linkstream_ingest_clicks_missing_total", "linkstream_ingest_records_dead_total",
		"linkstream_ingest_records_deleted_total", "linkstream_ingest_log_epochs_total"},
}

// backlogs are the metrics of clicks that a service has yet to deliver.
var backlogs = map[string]string{"edge": gaugePending, "ingest": gaugeLag}

// loadedCluster is a cluster whose links visitors follow all the time.
type loadedCluster struct {
	*cluster
	random *rand.Rand
	links  []string // hashes of the links that the visitors follow
	load   *load
	extra  []target // links that the test itself has followed
}

// startLoadedCluster starts a cluster and visitors. Their links are in the edge's cache.
func startLoadedCluster(t *testing.T, settings ...string) *loadedCluster {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := &loadedCluster{cluster: startCluster(t, settings...), random: rand.New(rand.NewPCG(seed, 0))}
	targets := make([]target, faultLinks)
	for i := range targets {
		targets[i].hash = c.owner().link(t, object{"long_url": fmt.Sprintf("https://example.com/%d", i)})["hash"].(string)
		c.links = append(c.links, targets[i].hash)
	}
	c.warmCache(t)
	c.load = startLoad([]string{c.edge}, seed, visitPause, targets...)
	return c
}

// invalidateLinks publishes a change of each link, though none has changed, and returns when the edge has dropped a
// link from its cache. This can happen in production: changes are published when the broker is back, whether Postgres
// answers or not.
func (c *loadedCluster) invalidateLinks(t *testing.T) {
	t.Helper()
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.Changes = c.setting("LINKSTREAM_KAFKA_BROKERS"), c.setting("LINKSTREAM_KAFKA_CHANGES_TOPIC")
	client, err := stream.New(cfg, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	defer client.Close()
	edge := c.program("edge")
	before := edge.metric(t, counterStale)
	publisher := stream.NewInvalidationPublisher(client, slog.New(slog.DiscardHandler))
	for _, hash := range c.links {
		publisher.Publish(schema.Change{Hash: hash})
	}
	ended, end := context.WithCancel(t.Context())
	end()
	publisher.Run(ended) // publishes what is queued and returns
	edge.awaitMetric(t, counterStale, func(n float64) bool { return n > before })
}

// warmCache makes the edge look up the links. HEAD is not counted as a click.
func (c *loadedCluster) warmCache(t *testing.T) {
	t.Helper()
	for _, hash := range c.links {
		if err := c.visit(t, http.MethodHead, "/"+hash).isStatus(http.StatusFound); err != nil {
			t.Fatal(err)
		}
	}
}

// createAndFollow creates a link and follows it once.
func (c *loadedCluster) createAndFollow(t *testing.T) {
	t.Helper()
	hash := c.owner().link(t, object{"long_url": "https://example.com/extra"})["hash"].(string)
	c.click(t, hash)
	c.extra = append(c.extra, target{hash: hash, answered: 1})
}

// pause waits for a random time below most, so that the next fault happens at a random point of the services' work.
func (c *loadedCluster) pause(most time.Duration) {
	<-time.After(time.Duration(c.random.Int64N(int64(most))))
}

// crash kills a service that is ready. The service must not have lost clicks before: its counters die with it.
func (c *loadedCluster) crash(t *testing.T, p *program) {
	t.Helper()
	wantNoLoss(t, p)
	p.kill(t)
}

// finish ends the load and requires that all services recover, that each answered redirect is counted once, in the
// statistics and in the list, and that no click is lost.
func (c *loadedCluster) finish(t *testing.T) {
	t.Helper()
	targets := append(c.load.stop(t), c.extra...)
	begin := time.Now()
	c.awaitReady(t)
	for _, p := range c.programs {
		if name := backlogs[p.name]; name != "" {
			p.awaitMetric(t, name, func(n float64) bool { return n == 0 })
		}
	}
	checkTotals(t, c.owner(), targets)
	t.Logf("all clicks were counted %v after the last visit", time.Since(begin).Round(time.Millisecond))
	items, _ := c.owner().page(t, "")
	listed := map[any]int64{}
	for _, item := range items {
		listed[item["hash"]] = number(t, item, "clicks")
	}
	for _, link := range targets {
		if total := c.owner().total(t, link.hash); listed[link.hash] != total {
			t.Errorf("%q has %d clicks in the list, %d in its statistics", link.hash, listed[link.hash], total)
		}
		if link.refused > 0 {
			t.Errorf("%d visits of %q, which was cached, were answered with 503", link.refused, link.hash)
		}
	}
	for _, p := range c.programs {
		wantNoLoss(t, p)
	}
}

func wantNoLoss(t *testing.T, p *program) {
	t.Helper()
	for _, name := range losses[p.name] {
		if value := p.metric(t, name); value != 0 {
			t.Errorf("%s of %s is %v, want 0", name, p.name, value)
		}
	}
}

// metric returns the value of a metric, which the service must have.
func (p *program) metric(t *testing.T, name string) float64 {
	t.Helper()
	value, err := p.tryMetric(t, name)
	testkit.Must(t, err)
	return value
}

func (p *program) tryMetric(t *testing.T, name string) (float64, error) {
	a, err := tryCall(t, http.MethodGet, p.ops+"/metrics", "")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(a.raw) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(text), 64)
		}
	}
	return 0, fmt.Errorf("%s has no metric %s", p.name, name)
}

// awaitMetric waits until ok accepts the value of a metric. The service may still be starting.
func (p *program) awaitMetric(t *testing.T, name string, ok func(float64) bool) {
	t.Helper()
	testkit.SucceedsWithin(t, 2*testkit.Patience, func() error {
		value, err := p.tryMetric(t, name)
		if err == nil && !ok(value) {
			err = fmt.Errorf("%s of %s is %v", name, p.name, value)
		}
		return err
	})
}

// wantUnavailable requires that the API answers in time with 503, a message that begins with one of what, and
// Retry-After.
func (c *loadedCluster) wantUnavailable(t *testing.T, method, path, body string, what ...string) {
	t.Helper()
	begin := time.Now()
	a := c.owner().call(t, method, path, body).want(t, http.StatusServiceUnavailable)
	if took := time.Since(begin); took > errorWithin {
		t.Errorf("%s was answered after %v", a.request, took)
	}
	message, _ := a.body["message"].(string)
	if !slices.ContainsFunc(what, func(w string) bool { return strings.HasPrefix(message, w+" cannot be ") }) {
		t.Errorf("the message begins with none of %q: %v", what, a)
	}
	wantRetryAfter(t, a)
}

// wantUnknown requires that the edge answers a visit of an unknown link in time and with this status.
func (c *loadedCluster) wantUnknown(t *testing.T, status int) {
	t.Helper()
	begin := time.Now()
	a := c.visit(t, http.MethodGet, fmt.Sprintf("/unknown%d", c.random.Uint32()))
	if err := a.isStatus(status); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > errorWithin {
		t.Errorf("%s was answered after %v", a.request, took)
	}
	if status == http.StatusServiceUnavailable {
		wantRetryAfter(t, a)
	}
}

func wantRetryAfter(t *testing.T, a answer) {
	t.Helper()
	if err := integer(json.Number(a.header.Get("Retry-After"))); err != nil {
		t.Errorf("Retry-After: %v: %v", err, a)
	}
}
