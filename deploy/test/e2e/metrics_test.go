package e2e_test

import (
	"errors"
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

// metric returns the value of a metric, which the service must have.
func (p *program) metric(t *testing.T, name string) float64 {
	t.Helper()
	value, err := p.tryMetric(name)
	testkit.Must(t, err)
	return value
}

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

// awaitRise waits until the sum of a metric of all programs of a service is greater than it is now, at least by this
// much. None of them may end meanwhile. They may still be starting.
func (s *system) awaitRise(t *testing.T, service, name string, by float64) {
	t.Helper()
	sum := func() (sum float64, err error) {
		for _, p := range s.all(service) {
			value, failed := p.tryMetric(name)
			sum, err = sum+value, errors.Join(err, failed)
		}
		return sum, err
	}
	var before float64
	testkit.Succeeds(t, func() (err error) { before, err = sum(); return err })
	testkit.SucceedsWithin(t, 2*testkit.Patience, func() error {
		now, err := sum()
		if err == nil && now < before+by {
			err = fmt.Errorf("%s of %s was %v and is %v", name, service, before, now)
		}
		return err
	})
}
