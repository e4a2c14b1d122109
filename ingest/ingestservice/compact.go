package ingestservice

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

const (
	compactEvery = 24 * time.Hour
	compactRetry = time.Hour        // after a failure
	compactFirst = 10 * time.Minute // at most, so that processes that start together do not all ask at once
)

// compacter is a click store that keeps clicks as rows, and old ones as fewer rows.
type compacter interface {
	// Compact compacts the months that are old enough, and returns them, also with an error. Several processes may call
	// it; one of them compacts.
	Compact(ctx context.Context) ([]schema.CompactedMonth, error)
}

// compactions compacts a store every day.
type compactions struct {
	store compacter
	log   *slog.Logger

	succeeded             *metrics.Gauge
	failures, months      *metrics.Counter
	rowsBefore, rowsAfter *metrics.Counter
}

func newCompactions(store compacter, log *slog.Logger, set *metrics.Set) *compactions {
	return &compactions{
		store: store, log: log,
		succeeded: service.NewGauge(set, "linkstream_ingest_compaction_success_timestamp_seconds",
			"Unix time of the last run of compaction without an error; 0 before the first one.", nil),
		failures: service.NewCounter(set, "linkstream_ingest_compaction_failures_total",
			"Runs of compaction that failed and are repeated."),
		months: service.NewCounter(set, "linkstream_ingest_compacted_months_total",
			"Months whose clicks were compacted."),
		rowsBefore: service.NewCounter(set, "linkstream_ingest_compacted_rows_before_total",
			"Rows of the compacted months before."),
		rowsAfter: service.NewCounter(set, "linkstream_ingest_compacted_rows_after_total",
			"Rows of the compacted months afterwards."),
	}
}

// run compacts until ctx is done.
func (c *compactions) run(ctx context.Context) {
	wait := rand.N(compactFirst)
	for {
		stream.Sleep(ctx, wait)
		if ctx.Err() != nil {
			return
		}
		wait = compactEvery
		if err := c.compact(ctx); err != nil && ctx.Err() == nil {
			c.failures.Inc()
			c.log.Error("cannot compact old clicks, trying again later", "error", err)
			wait = compactRetry
		}
	}
}

func (c *compactions) compact(ctx context.Context) error {
	began := time.Now()
	done, err := c.store.Compact(ctx)
	for _, m := range done {
		c.months.Inc()
		c.rowsBefore.AddInt64(int64(m.RowsBefore))
		c.rowsAfter.AddInt64(int64(m.RowsAfter))
		c.log.Info("compacted a month of clicks", "month", m.Month, "rows_before", m.RowsBefore, "rows_after", m.RowsAfter)
	}
	if err != nil {
		return err
	}
	if len(done) > 0 {
		c.log.Info("compacted old clicks", "months", len(done), "took", time.Since(began).Round(time.Millisecond))
	}
	c.succeeded.Set(float64(time.Now().Unix()))
	return nil
}
