package e2e_test

import (
	"bufio"
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
)

const (
	faultLinks = 5
	faultPause = 2 * time.Millisecond // of a visitor: several clusters share this machine with their tests
	errorSoon  = 5 * time.Second      // an answer that says that an engine is away may take no longer

	counterStale    = `linkstream_edge_cache_stale_total{cache="links"}`
	gaugePending    = "linkstream_edge_spool_pending_clicks"
	gaugePartitions = "linkstream_ingest_partitions"
	gaugeLag        = "linkstream_ingest_lag_records"
	counterCounted  = "linkstream_ingest_clicks_counted_total"
)

// losses are the metrics of each service that say that a click was lost, or was not counted as one.
var losses = map[string][]string{
	"edge": {"linkstream_edge_clicks_dropped_total"},
	"ingest": {"linkstream_ingest_clicks_missing_total", "linkstream_ingest_records_dead_total",
		"linkstream_ingest_records_deleted_total"},
}

// trial is a cluster under load to which faults happen.
type trial struct {
	*cluster
	random  *rand.Rand
	links   []string // hashes of those that the visitors follow
	load    *load
	further []target // links that the test itself has followed
}

// startTrial starts a cluster and a load whose links are in the edge's memory.
func startTrial(t *testing.T, settings ...string) *trial {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := &trial{cluster: startCluster(t, settings...), random: rand.New(rand.NewPCG(seed, 0))}
	targets := make([]target, faultLinks)
	for i := range targets {
		targets[i].hash = r.owner().link(t, object{"long_url": fmt.Sprintf("https://example.com/%d", i)})["hash"].(string)
		r.links = append(r.links, targets[i].hash)
	}
	r.warm(t)
	r.load = startLoad([]string{r.edge}, seed, faultPause, targets...)
	return r
}

// announce has the edge hear that all links were changed, though they were not, and returns when it has. So it may be at
// any time: announcements wait while the broker is away, and then do not ask whether Postgres answers.
func (r *trial) announce(t *testing.T) {
	t.Helper()
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.Changes = r.setting("LINKSTREAM_KAFKA_BROKERS"), r.setting("LINKSTREAM_KAFKA_CHANGES_TOPIC")
	client, err := stream.New(cfg, slog.New(slog.DiscardHandler))
	must(t, err)
	defer client.Close()
	edge := r.node("edge")
	before := edge.metric(t, counterStale)
	publisher := stream.NewInvalidationPublisher(client, slog.New(slog.DiscardHandler))
	for _, hash := range r.links {
		publisher.Publish(schema.Change{Hash: hash})
	}
	ended, end := context.WithCancel(t.Context())
	end()
	publisher.Run(ended) // sends what waits
	edge.awaitMetric(t, counterStale, func(n float64) bool { return n > before })
}

// warm has the edge look the links up. HEAD does not count.
func (r *trial) warm(t *testing.T) {
	t.Helper()
	for _, hash := range r.links {
		if err := r.visit(t, http.MethodHead, "/"+hash).isStatus(http.StatusFound); err != nil {
			t.Fatal(err)
		}
	}
}

// follow makes a link and follows it once.
func (r *trial) follow(t *testing.T) {
	t.Helper()
	hash := r.owner().link(t, object{"long_url": "https://example.com/further"})["hash"].(string)
	r.click(t, hash)
	r.further = append(r.further, target{hash: hash, answered: 1})
}

// rest waits for a random time below most, so that what follows finds the services at any point of their work.
func (r *trial) rest(most time.Duration) { <-time.After(time.Duration(r.random.Int64N(int64(most)))) }

// crash kills a service that is ready, as it has lost nothing.
func (r *trial) crash(t *testing.T, n *node) {
	t.Helper()
	wantNoLoss(t, n)
	n.kill(t)
}

// settle ends the load and requires that all services get well, that each answered redirect is counted once, in the
// statistics as in the list, and that nothing was lost.
func (r *trial) settle(t *testing.T) {
	t.Helper()
	targets := append(r.load.stop(t), r.further...)
	begin := time.Now()
	for _, n := range r.nodes {
		n.awaitReady(t)
	}
	eventually(t, 2*countedWithin, func() error {
		for _, n := range r.nodes {
			for _, name := range []string{gaugePending, gaugeLag} {
				if value := n.metric(t, name); value > 0 {
					return fmt.Errorf("%s of %s is %v", name, n.program, value)
				}
			}
		}
		return nil
	})
	checkTotals(t, r.owner(), targets)
	t.Logf("all was counted %v after the last visit", time.Since(begin).Round(time.Millisecond))
	items, _ := r.owner().page(t, "")
	listed := map[any]int64{}
	for _, item := range items {
		listed[item["hash"]] = number(t, item, "clicks")
	}
	for _, link := range targets {
		if total := r.owner().total(t, link.hash); listed[link.hash] != total {
			t.Errorf("%q has %d clicks in the list, %d in its statistics", link.hash, listed[link.hash], total)
		}
		if link.refused > 0 {
			t.Errorf("%d visits of %q, which was in memory, were answered with 503", link.refused, link.hash)
		}
	}
	for _, n := range r.nodes {
		wantNoLoss(t, n)
	}
}

func wantNoLoss(t *testing.T, n *node) {
	t.Helper()
	for _, name := range losses[n.program] {
		if value := n.metric(t, name); value != 0 {
			t.Errorf("%s of %s is %v, want 0", name, n.program, value)
		}
	}
}

// metric returns the value of a metric, 0 if the service has none of that name.
func (n *node) metric(t *testing.T, name string) float64 {
	t.Helper()
	a := call(t, http.MethodGet, n.bases[0]+"/metrics", "")
	for lines := bufio.NewScanner(strings.NewReader(a.raw)); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatalf("metric %s: %v", name, err)
			}
			return value
		}
	}
	return 0
}

// awaitMetric waits until a metric has a value that is ok.
func (n *node) awaitMetric(t *testing.T, name string, ok func(float64) bool) {
	t.Helper()
	eventually(t, 2*countedWithin, func() error {
		if value := n.metric(t, name); !ok(value) {
			return fmt.Errorf("%s of %s is %v", name, n.program, value)
		}
		return nil
	})
}

// wantUnavailable requires that the API answers a request soon, by 503, what cannot be had and when to come back.
func (r *trial) wantUnavailable(t *testing.T, method, path, body string, what ...string) {
	t.Helper()
	begin := time.Now()
	a := r.owner().call(t, method, path, body).want(t, http.StatusServiceUnavailable)
	if took := time.Since(begin); took > errorSoon {
		t.Errorf("%s was answered after %v", a.request, took)
	}
	said, _ := a.body["message"].(string)
	if !slices.ContainsFunc(what, func(w string) bool { return strings.HasPrefix(said, w+" cannot be ") }) {
		t.Errorf("no word of %q: %v", what, a)
	}
	wantRetryAfter(t, a)
}

// wantUnknown requires that the edge answers soon, with this status, when a link that it does not know is visited.
func (r *trial) wantUnknown(t *testing.T, status int) {
	t.Helper()
	begin := time.Now()
	a := r.visit(t, http.MethodGet, fmt.Sprintf("/unknown%d", r.random.Uint32()))
	if err := a.isStatus(status); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > errorSoon {
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
