//go:build engines

package e2e_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

const (
	faultLinks = 5
	// faultPause is longer than visitPause: faults last long, and what a click costs all programs and engines is most
	// of what the tests cost.
	faultPause = 25 * time.Millisecond
)

// loadedCluster is a system whose links visitors follow.
type loadedCluster struct {
	*cluster
	random *rand.Rand
	visits []target // of all links that are followed, with the outcomes so far
	links  []string // hashes of the links that the visitors follow
	load   *load    // nil while there are no visitors
}

// startLoadedCluster starts services on engines that no other test uses, and visitors.
func startLoadedCluster(t *testing.T, settings ...string) *loadedCluster {
	t.Helper()
	return startLoaded(t, startCluster(t, settings...))
}

// startLoaded creates links on a system that is ready and starts visitors. The links are in the edge's cache.
func startLoaded(t *testing.T, of *cluster) *loadedCluster {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := &loadedCluster{cluster: of, random: rand.New(rand.NewPCG(seed, 0))}
	for i := range faultLinks {
		hash := c.owner().Link(t, object{"long_url": fmt.Sprintf("https://example.com/%d", i)})["hash"].(string)
		c.links = append(c.links, hash)
	}
	c.warmCache(t)
	c.startVisitors()
	return c
}

// startVisitors starts visitors unless there are any.
func (c *loadedCluster) startVisitors() {
	if c.load == nil {
		targets := make([]target, len(c.links))
		for i, hash := range c.links {
			targets[i].hash = hash
		}
		c.load = startLoad([]string{c.edge}, c.random.Uint64(), faultPause, targets...)
	}
}

// stopVisitors stops the visitors, if there are any.
func (c *loadedCluster) stopVisitors(t *testing.T) {
	t.Helper()
	if c.load == nil {
		return
	}
	for _, visited := range c.load.stop(t) {
		if visited.refused > 0 {
			t.Errorf("%d visits of %q, which was cached, were answered with 503", visited.refused, visited.hash)
		}
		c.note(visited)
	}
	c.load = nil
}

// note adds the outcomes of visits.
func (c *loadedCluster) note(visited target) {
	for i := range c.visits {
		if c.visits[i].hash == visited.hash {
			c.visits[i].answered += visited.answered
			c.visits[i].cut += visited.cut
			return
		}
	}
	c.visits = append(c.visits, visited)
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
	var changes []schema.Change
	for _, hash := range c.links {
		changes = append(changes, schema.Change{Hash: hash})
	}
	testkit.Must(t, client.PublishChanges(t.Context(), changes))
	edge.awaitMetric(t, counterStale, func(n float64) bool { return n > before })
}

// warmCache makes the edge look up the links. HEAD is not counted as a click.
func (c *loadedCluster) warmCache(t *testing.T) {
	t.Helper()
	for _, hash := range c.links {
		if err := c.visit(t, http.MethodHead, "/"+hash).IsStatus(http.StatusFound); err != nil {
			t.Fatal(err)
		}
	}
}

// createAndFollow creates a link and follows it once.
func (c *loadedCluster) createAndFollow(t *testing.T) {
	t.Helper()
	hash := c.owner().Link(t, object{"long_url": "https://example.com/extra"})["hash"].(string)
	c.click(t, hash)
	c.note(target{hash: hash, answered: 1})
}

// pause waits for a random time below most, so that the next fault happens at a random point of the services' work.
func (c *loadedCluster) pause(most time.Duration) {
	<-time.After(time.Duration(c.random.Int64N(int64(most))))
}

// crash kills a program that is ready. It must not have lost clicks before: its counters die with it.
func (c *loadedCluster) crash(t *testing.T, p *program) {
	t.Helper()
	p.wantNoLosses(t)
	p.kill(t)
}

// wantNoLosses requires that a program has counted no loss since its start.
func (p *program) wantNoLosses(t *testing.T) {
	t.Helper()
	for _, name := range losses[p.name] {
		testkit.Equal(t, name+" of "+p.name, p.metric(t, name), 0)
	}
}

// stopAndVerify stops the visitors and requires that all programs recover, and that each answered redirect is counted
// once, in the statistics and in the list.
func (c *loadedCluster) stopAndVerify(t *testing.T) {
	t.Helper()
	c.stopVisitors(t)
	begin := time.Now()
	c.awaitReady(t)
	for _, p := range c.programs {
		if name := backlogs[p.name]; name != "" {
			p.awaitMetric(t, name, func(n float64) bool { return n == 0 })
		}
		p.wantNoLosses(t)
	}
	checkTotals(t, c.owner(), c.visits)
	c.wantVerified(t)
	t.Logf("all clicks were counted %v after the last visit", time.Since(begin).Round(time.Millisecond))
	c.checkList(t)
}

// checkList requires that the newest links have as many clicks in the list as in their statistics.
func (c *loadedCluster) checkList(t *testing.T) {
	t.Helper()
	items, _ := c.owner().Page(t, "")
	testkit.Equal(t, "links in the list", len(items), min(len(c.visits), 20))
	for _, item := range items {
		hash := item["hash"].(string)
		if listed, total := number(t, item, "clicks"), c.owner().Total(t, hash); listed != total {
			t.Errorf("%q has %d clicks in the list, %d in its statistics", hash, listed, total)
		}
	}
}

// fault is a way in which engines or programs fail under load.
type fault struct {
	name  string
	cause func()
}

// causeEach causes one fault after the other, each with new visitors, and compares what is counted after each.
func (c *loadedCluster) causeEach(t *testing.T, faults ...fault) {
	t.Helper()
	for _, f := range faults {
		c.startVisitors()
		c.cause(t, f)
		c.stopAndVerify(t)
		if t.Failed() {
			t.Fatalf("after: %s", f.name)
		}
	}
}

func (c *loadedCluster) cause(t *testing.T, f fault) {
	t.Helper()
	begin := time.Now()
	t.Logf("%s …", f.name) // shown when the test fails in it
	f.cause()
	t.Logf("%s: %v", f.name, time.Since(begin).Round(time.Millisecond))
}

// losses are the metrics of each service that count lost or discarded clicks, or doubts about the log.
var losses = map[string][]string{
	"edge": {counterDropped, "linkstream_edge_clicks_refused_total", "linkstream_edge_spool_damaged_total"},
	"ingest": {counterMissing, "linkstream_ingest_records_dead_total", "linkstream_ingest_records_deleted_total",
		counterEpochs},
}

// backlogs are the metrics of clicks that a service has yet to deliver.
var backlogs = map[string]string{"edge": gaugePending, "ingest": gaugeLag}
