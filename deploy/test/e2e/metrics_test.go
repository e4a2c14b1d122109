package e2e_test

import (
	"fmt"
	"testing"

	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

const (
	counterStale    = `linkstream_edge_cache_stale_total{cache="links"}`
	counterDropped  = "linkstream_edge_clicks_dropped_total"
	counterShipping = "linkstream_edge_ship_failures_total"
	gaugePending    = "linkstream_edge_spool_pending_clicks"
	gaugePartitions = "linkstream_ingest_partitions"
	gaugeLag        = "linkstream_ingest_lag_records"
	counterCounted  = "linkstream_ingest_clicks_counted_total"
	counterFailures = "linkstream_ingest_failures_total"
	counterMissing  = "linkstream_ingest_clicks_missing_total"
	counterEpochs   = "linkstream_ingest_log_epochs_total"
)

func (p *program) tryMetric(name string) (float64, error) { return launch.TryMetric(p.ops, name) }

// awaitMetric waits until ok accepts the value of a metric. The service may still be starting.
func (p *program) awaitMetric(t *testing.T, name string, ok func(float64) bool) {
	t.Helper()
	testkit.SucceedsWithin(t, 2*testkit.Patience, func() error {
		value, err := p.tryMetric(name)
		if err == nil && !ok(value) {
			err = fmt.Errorf("%s of %s is %v", name, p.name, value)
		}
		return err
	})
}
