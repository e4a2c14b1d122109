package ingestservice

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

const (
	balanceEvery   = 5 * time.Minute // a query of all lanes
	balanceTimeout = 2 * time.Minute
)

// balanceWatch compares the marks of all lanes with the clicks counted in them. Unlike the worker's counters, the
// result outlives processes and includes all workers. The command verify says which clicks they are.
type balanceWatch struct {
	clicks laneCounts
	log    *slog.Logger

	missing, repeated atomic.Uint64
}

// laneCounts is the part of a click store that is measured.
type laneCounts interface {
	LaneCounts(ctx context.Context, each func(schema.LaneCount) error) error
}

func newBalanceWatch(clicks laneCounts, log *slog.Logger, set *metrics.Set) *balanceWatch {
	w := &balanceWatch{clicks: clicks, log: log}
	service.NewGauge(set, "linkstream_ingest_uncounted_clicks",
		"Clicks that lanes have passed without counting them: lost, or set aside. Measured every 5 minutes in the click "+
			"store.",
		func() float64 { return float64(w.missing.Load()) })
	service.NewGauge(set, "linkstream_ingest_recounted_clicks",
		"Clicks counted more than once. Measured every 5 minutes in the click store.",
		func() float64 { return float64(w.repeated.Load()) })
	return w
}

// run measures until ctx is done.
func (w *balanceWatch) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.measure(ctx); err != nil && ctx.Err() == nil {
			w.log.Warn("cannot compare lanes with the clicks counted in them", "error", err)
		}
		stream.Sleep(ctx, balanceEvery)
	}
}

// measure keeps the last results if it fails.
func (w *balanceWatch) measure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, balanceTimeout)
	defer cancel()
	missing, repeated := uint64(0), uint64(0)
	err := w.clicks.LaneCounts(ctx, func(lane schema.LaneCount) error {
		missing += lane.Missing()
		repeated += lane.Repeated()
		return nil
	})
	if err == nil {
		w.missing.Store(missing)
		w.repeated.Store(repeated)
	}
	return err
}
