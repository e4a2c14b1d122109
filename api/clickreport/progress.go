package clickreport

import (
	"context"
	"log/slog"
	"time"
)

const (
	lagTimeout = time.Second     // of one measurement
	lagFresh   = time.Second     // how long a result is used
	lagPause   = 5 * time.Second // after a failed measurement, so that pages rarely wait for it
)

// ClickLog is the log in which clicks wait to be counted: the topic of clicks, or the spool on a machine without a
// broker.
type ClickLog interface {
	// Lag returns the number of records that are not counted yet and the time of the oldest.
	Lag(ctx context.Context) (records int64, oldest time.Time, err error)
}

// Progress says up to when clicks are counted.
type Progress struct {
	Known   bool
	Waiting int64     // clicks in the log that are not counted
	UpTo    time.Time // when the oldest uncounted click was written to the log
}

// Lag measures progress once for all concurrent viewers.
type Lag struct {
	clickLog ClickLog
	log      *slog.Logger

	turn  chan struct{} // a semaphore: full while one viewer measures and the others wait
	last  Progress      // guarded by turn, like until
	until time.Time     // last is used until then
}

// NewLag returns the lag behind a log; with a nil log the lag is unknown.
func NewLag(clickLog ClickLog, log *slog.Logger) *Lag {
	return &Lag{clickLog: clickLog, log: log, turn: make(chan struct{}, 1)}
}

// Progress returns a result at most lagFresh old. It takes at most lagTimeout. A viewer that leaves does not cancel the
// measurement for the others.
func (w *Lag) Progress(ctx context.Context) Progress {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return Progress{}
	}
	if time.Now().Before(w.until) {
		return w.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lagTimeout)
	defer cancel()
	if w.clickLog == nil {
		return Progress{}
	}
	records, oldest, err := w.clickLog.Lag(ctx)
	if err != nil {
		if w.last.Known || w.until.IsZero() {
			w.log.Warn("how far clicks are counted is unknown", "error", err)
		}
		w.last, w.until = Progress{}, time.Now().Add(lagPause)
		return w.last
	}
	w.last, w.until = Progress{Known: true, Waiting: records, UpTo: oldest.UTC()}, time.Now().Add(lagFresh)
	return w.last
}

// CountedUntil returns the time up to which all clicks are counted; false if it is unknown.
func (w *Lag) CountedUntil(ctx context.Context) (time.Time, bool) {
	p := w.Progress(ctx)
	if p.Waiting == 0 {
		return time.Now(), p.Known
	}
	return p.UpTo, p.Known
}
