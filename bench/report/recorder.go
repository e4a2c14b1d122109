package report

import (
	"context"
	"sync"
	"time"
)

// Recorder samples quantities during a run.
type Recorder struct {
	every time.Duration
	began time.Time

	mu     sync.Mutex
	traces []*trace
}

// trace is a growing series.
type trace struct {
	Series
	read func() (float64, bool)
	rate bool
	last float64
	at   time.Time // of last; zero before the first sample
}

// NewRecorder returns a recorder whose time starts now.
func NewRecorder(every time.Duration) *Recorder { return &Recorder{every: every, began: time.Now()} }

// Gauge adds a series of the values that read returns. Samples for which read returns false are left out.
func (r *Recorder) Gauge(chart, name, unit string, read func() (float64, bool)) {
	r.add(&trace{Series: Series{Chart: chart, Name: name, Unit: unit}, read: read})
}

// Rate adds a series of the growth per second of the values that read returns.
func (r *Recorder) Rate(chart, name, unit string, read func() (float64, bool)) {
	r.add(&trace{Series: Series{Chart: chart, Name: name, Unit: unit}, read: read, rate: true})
}

func (r *Recorder) add(t *trace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.traces = append(r.traces, t)
}

// Run samples until ctx is done.
func (r *Recorder) Run(ctx context.Context) {
	tick := time.NewTicker(r.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.sample(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

func (r *Recorder) sample(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.traces {
		value, ok := t.read()
		if !ok {
			continue
		}
		if t.rate {
			grown, since := value-t.last, now.Sub(t.at)
			first := t.at.IsZero()
			t.last, t.at = value, now
			if first {
				continue
			}
			value = grown / since.Seconds()
		}
		t.Seconds = append(t.Seconds, now.Sub(r.began).Seconds())
		t.Values = append(t.Values, value)
	}
}

// Series returns the series with at least one sample. It must not be called before Run has returned.
func (r *Recorder) Series() []Series {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Series
	for _, t := range r.traces {
		if len(t.Values) > 0 {
			all = append(all, t.Series)
		}
	}
	return all
}
