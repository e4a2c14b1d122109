package ingestservice

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

const (
	measureEvery   = 5 * time.Second
	measureTimeout = 20 * time.Second
)

// ageWatch measures the age of the oldest click in the topic that is not counted, by any worker, and how long the topic
// keeps it.
type ageWatch struct {
	client *stream.Client
	clicks schema.PositionStore
	log    *slog.Logger

	oldest    atomic.Pointer[time.Time] // nil if every click is counted
	retention atomic.Int64              // 0: for ever, or not read yet
}

func newAgeWatch(client *stream.Client, clicks schema.PositionStore, log *slog.Logger, set *metrics.Set) *ageWatch {
	w := &ageWatch{client: client, clicks: clicks, log: log}
	service.NewGauge(set, "linkstream_ingest_oldest_click_seconds",
		"Age of the oldest click in the topic that is not counted; 0 if every click is.",
		func() float64 { return w.age().Seconds() })
	service.NewGauge(set, "linkstream_ingest_retention_seconds",
		"Time for which the topic keeps a click, counted or not; 0 if for ever, or if it is not known.",
		func() float64 { return time.Duration(w.retention.Load()).Seconds() })
	return w
}

// run measures until ctx is done.
func (w *ageWatch) run(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		err := w.measure(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			w.log.Warn("cannot measure the age of the oldest click", "error", err)
		}
		failing = err != nil
		stream.Sleep(ctx, measureEvery)
	}
}

// measure keeps the last results if it fails: the oldest click then gets older.
func (w *ageWatch) measure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	retention, err := w.client.Retention(ctx)
	if err != nil {
		return err
	}
	w.retention.Store(int64(retention))
	_, oldest, err := w.client.Lag(ctx, w.position)
	if err != nil {
		return err
	}
	if oldest.IsZero() {
		w.oldest.Store(nil)
	} else {
		w.oldest.Store(&oldest)
	}
	return nil
}

// position returns the store's next offset. While the store does not answer, it returns the offset that the group has
// committed.
func (w *ageWatch) position(ctx context.Context, partition int) (int64, error) {
	at, err := w.clicks.Position(ctx, partition)
	if err != nil {
		return 0, nil
	}
	return at.Next, nil
}

func (w *ageWatch) age() time.Duration {
	oldest := w.oldest.Load()
	if oldest == nil {
		return 0
	}
	return max(0, time.Since(*oldest))
}

// ready returns nil unless the oldest click has spent half of the time for which the topic keeps it.
func (w *ageWatch) ready() error {
	age, kept := w.age(), time.Duration(w.retention.Load())
	if kept == 0 || age <= kept/2 {
		return nil
	}
	return fmt.Errorf("a click waits for %v to be counted, and is lost after %v: see the topic's retention.ms",
		age.Round(time.Second), kept)
}
