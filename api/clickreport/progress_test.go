package clickreport_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/clickreport"
)

var errBroker = errors.New("the broker does not answer")

// slowLog answers after a while, unless ctx ends before.
type slowLog struct {
	takes time.Duration
	mu    sync.Mutex
	asked int
	err   error
	wait  int64
}

func (l *slowLog) Lag(ctx context.Context) (int64, time.Time, error) {
	l.mu.Lock()
	l.asked++
	takes, wait, err := l.takes, l.wait, l.err
	l.mu.Unlock()
	select {
	case <-time.After(takes):
		return wait, time.Unix(0, 0), err
	case <-ctx.Done():
		return 0, time.Time{}, ctx.Err()
	}
}

func (l *slowLog) wantAsked(t *testing.T, times int) {
	t.Helper()
	if l.asked != times {
		t.Errorf("the log was asked %d times, want %d", l.asked, times)
	}
	l.asked = 0
}

func TestLag(t *testing.T) {
	watch := func(t *testing.T, test func(t *testing.T, clickLog *slowLog, w *clickreport.Lag, lines *bytes.Buffer)) {
		synctest.Test(t, func(t *testing.T) {
			clickLog, lines := &slowLog{wait: 7}, new(bytes.Buffer)
			test(t, clickLog, clickreport.NewLag(clickLog, slog.New(slog.NewTextHandler(lines, nil))), lines)
		})
	}
	t.Run("asks once for all readers within a second", func(t *testing.T) {
		watch(t, func(t *testing.T, clickLog *slowLog, w *clickreport.Lag, _ *bytes.Buffer) {
			clickLog.takes = 100 * time.Millisecond
			var viewers sync.WaitGroup
			for range 50 {
				viewers.Go(func() {
					if got := w.Progress(t.Context()); !got.Known || got.Waiting != 7 || got.UpTo.Location() != time.UTC {
						t.Errorf("got %+v", got)
					}
				})
			}
			viewers.Wait()
			clickLog.wantAsked(t, 1)
			time.Sleep(time.Second)
			w.Progress(t.Context())
			clickLog.wantAsked(t, 1)
		})
	})
	t.Run("gives up after a second, and leaves the log alone for five", func(t *testing.T) {
		watch(t, func(t *testing.T, clickLog *slowLog, w *clickreport.Lag, lines *bytes.Buffer) {
			clickLog.takes = time.Hour
			began := time.Now()
			for range 5 {
				if got := w.Progress(t.Context()); got.Known {
					t.Errorf("got %+v", got)
				}
			}
			if took := time.Since(began); took != time.Second {
				t.Errorf("five viewers waited %v, want 1s", took)
			}
			clickLog.wantAsked(t, 1)
			time.Sleep(5 * time.Second)
			w.Progress(t.Context())
			clickLog.takes = 0
			time.Sleep(5 * time.Second)
			if got := w.Progress(t.Context()); !got.Known || got.Waiting != 7 {
				t.Errorf("once the log answers: %+v", got)
			}
			if n := strings.Count(lines.String(), "unknown"); n != 1 {
				t.Errorf("%d lines in the log, want 1 for one outage:\n%s", n, lines)
			}
		})
	})
	t.Run("an error is unknown, not zero", func(t *testing.T) {
		watch(t, func(t *testing.T, clickLog *slowLog, w *clickreport.Lag, _ *bytes.Buffer) {
			clickLog.err = errBroker
			if got := w.Progress(t.Context()); got.Known {
				t.Errorf("got %+v", got)
			}
		})
	})
	t.Run("a reader who leaves does not fail the others", func(t *testing.T) {
		watch(t, func(t *testing.T, clickLog *slowLog, w *clickreport.Lag, _ *bytes.Buffer) {
			clickLog.takes = 100 * time.Millisecond
			ctx, leave := context.WithCancel(t.Context())
			leave()
			w.Progress(ctx)
			if got := w.Progress(t.Context()); !got.Known {
				t.Errorf("got %+v", got)
			}
			clickLog.wantAsked(t, 1)
		})
	})
}
