package dashboard

import (
	"context"
	"log/slog"
	"time"

	"linkstream/schema"
)

const (
	lagTimeout = time.Second     // of one measurement
	lagFresh   = time.Second     // how long a result is used
	lagPause   = 5 * time.Second // after a failed measurement, so that pages rarely wait for it
)

// clickLog is the topic of clicks.
type clickLog interface {
	// Lag returns the number of records that are not counted yet and the time of the oldest. position returns the first
	// offset of a partition that the click store has not accounted for.
	Lag(ctx context.Context, position func(ctx context.Context, partition int) (int64, error)) (
		records int64, oldest time.Time, err error)
}

// progress says up to when clicks are counted.
type progress struct {
	Known   bool
	Waiting int64     // clicks in the log that are not counted
	UpTo    time.Time // when the oldest of them was written to the log
}

// lagWatch measures progress once for all concurrent viewers.
type lagWatch struct {
	clicks   schema.ClickStore
	clickLog clickLog
	log      *slog.Logger

	turn  chan struct{} // a semaphore: full while one viewer measures and the others wait
	last  progress      // guarded by turn, like until
	until time.Time     // last is used until then
}

func newLagWatch(clicks schema.ClickStore, clickLog clickLog, log *slog.Logger) *lagWatch {
	return &lagWatch{clicks: clicks, clickLog: clickLog, log: log, turn: make(chan struct{}, 1)}
}

// progress returns a result at most lagFresh old. It takes at most lagTimeout. A viewer that leaves does not cancel the
// measurement for the others.
func (w *lagWatch) progress(ctx context.Context) progress {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return progress{}
	}
	if time.Now().Before(w.until) {
		return w.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lagTimeout)
	defer cancel()
	if w.clickLog == nil {
		return progress{}
	}
	records, oldest, err := w.clickLog.Lag(ctx, w.position)
	if err != nil {
		if w.last.Known || w.until.IsZero() {
			w.log.Warn("how far clicks are counted is unknown", "error", err)
		}
		w.last, w.until = progress{}, time.Now().Add(lagPause)
		return w.last
	}
	w.last, w.until = progress{Known: true, Waiting: records, UpTo: oldest.UTC()}, time.Now().Add(lagFresh)
	return w.last
}

func (w *lagWatch) position(ctx context.Context, partition int) (int64, error) {
	at, err := w.clicks.Position(ctx, partition)
	return at.Next, err
}

// CountedUntil returns the time up to which all clicks are counted; false if that is not known.
func (d *Dashboard) CountedUntil(ctx context.Context) (time.Time, bool) {
	p := d.lag.progress(ctx)
	if p.Waiting == 0 {
		return time.Now(), p.Known
	}
	return p.UpTo, p.Known
}

// Stamp formats UpTo for programs.
func (p progress) Stamp() string { return p.UpTo.Format(time.RFC3339) }

// Clock formats UpTo for people, with the date unless it is today.
func (p progress) Clock() string {
	if today(time.Now()).Equal(today(p.UpTo)) {
		return p.UpTo.Format("15:04:05 UTC")
	}
	return p.UpTo.Format("2 Jan 2006, 15:04:05 UTC")
}

// Wait describes how many clicks wait.
func (p progress) Wait() string { return counted(p.Waiting, "click waits", "clicks wait") }

// State returns the CSS class.
func (p progress) State() string {
	switch {
	case !p.Known:
		return "unknown"
	case p.Waiting > 0:
		return "behind"
	}
	return "now"
}
