package count

import (
	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema/service"
)

// Metrics are the metrics of all that counts clicks.
type Metrics struct {
	Counted, Repeated, Missing, Failures *metrics.Counter
	Inserts                              *service.Histogram
}

// NewMetrics registers the metrics in set.
func NewMetrics(set *metrics.Set) Metrics {
	return Metrics{
		Counted:  Counter(set, "clicks_counted", "Clicks inserted into the click store."),
		Repeated: Counter(set, "clicks_repeated", "Clicks dropped because they were counted before."),
		Missing:  Counter(set, "clicks_missing", "Clicks that a gap in a lane shows to be lost."),
		Failures: Counter(set, "failures", "Attempts to count a batch that failed and are repeated."),
		Inserts: service.NewHistogram(set, "linkstream_ingest_insert_seconds",
			"Seconds that the click store takes to insert a batch, failures included."),
	}
}

// Counter registers the counter linkstream_ingest_name_total.
func Counter(set *metrics.Set, name, help string) *metrics.Counter {
	return service.NewCounter(set, "linkstream_ingest_"+name+"_total", help)
}
