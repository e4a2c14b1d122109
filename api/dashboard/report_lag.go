package dashboard

import (
	"context"
	"log/slog"
	"time"

	"linkstream/schema"
)

const (
	lagTimeout = time.Second     // of asking the click log and the click store
	lagFresh   = time.Second     // how long an answer is good for
	lagPause   = 5 * time.Second // before asking again what did not answer, so that no page waits for it often
)

// clickLog is the topic of clicks.
type clickLog interface {
	// Uncounted returns how many records wait to be counted, and the time of the oldest; position returns the first
	// offset of a partition that the click store has not accounted for.
	Lag(ctx context.Context, position func(ctx context.Context, partition int) (int64, error)) (
		records int64, oldest time.Time, err error)
}

// progress says how far clicks are counted.
type progress struct {
	Known   bool
	Waiting int64     // clicks that are in the log and not counted
	UpTo    time.Time // when the oldest of them came into the log
}

// lagWatch knows how far clicks are counted. It asks for all viewers together.
type lagWatch struct {
	clicks   schema.ClickStore
	clickLog clickLog
	log      *slog.Logger

	turn  chan struct{} // full while one asks: who comes meanwhile waits for the same answer
	last  progress      // whose turn it is has it, and until
	until time.Time     // last is good until then
}

func newLagWatch(clicks schema.ClickStore, clickLog clickLog, log *slog.Logger) *lagWatch {
	return &lagWatch{clicks: clicks, clickLog: clickLog, log: log, turn: make(chan struct{}, 1)}
}

// progress returns how far clicks were counted a moment ago. It takes no longer than lagTimeout. A viewer that leaves
// does not spoil the answer for the others.
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

// Stamp is UpTo as programs read it.
func (p progress) Stamp() string { return p.UpTo.Format(time.RFC3339) }

// Clock is UpTo as people read it, with the day where that is not today.
func (p progress) Clock() string {
	if today(time.Now()).Equal(today(p.UpTo)) {
		return p.UpTo.Format("15:04:05 UTC")
	}
	return p.UpTo.Format("2 Jan 2006, 15:04:05 UTC")
}

// Wait says how many clicks wait.
func (p progress) Wait() string { return counted(p.Waiting, "click waits", "clicks wait") }

// State is what the style sheet calls it.
func (p progress) State() string {
	switch {
	case !p.Known:
		return "unknown"
	case p.Waiting > 0:
		return "behind"
	}
	return "now"
}
