package worker_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/ingest/worker"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// pacedTopic gets a click at fixed intervals, until there are enough.
type pacedTopic struct {
	endlessTopic
	every  time.Duration
	clicks int // in all

	began   time.Time
	fetches int
}

// after returns how many clicks there are from an offset on.
func (p *pacedTopic) after(offset int64) int64 {
	return min(int64(p.clicks), int64(time.Since(p.began)/p.every)) - offset
}

func (p *pacedTopic) Fetch(ctx context.Context, partition int, offset int64, wait time.Duration,
	each func(stream.Record) error) (int64, error) {
	p.fetches++
	for deadline := time.Now().Add(wait); p.after(offset) == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	for ; p.after(offset) > 0; offset++ {
		p.value = append(schema.AppendClickIdentity(p.value[:0], lane(1), uint64(offset)+1), p.bodies[0]...)
		if err := each(stream.Record{Offset: offset, Time: noon, Value: p.value}); err != nil {
			return p.after(offset), err
		}
	}
	return 0, nil
}

// batchStore notes the clicks of the last batch.
type batchStore struct {
	discardStore
	clicks int
	takes  time.Duration // for an insert
}

func (s *batchStore) InsertClicks(_ context.Context, batch *schema.ClickBatch) error {
	s.clicks = batch.Len()
	time.Sleep(s.takes)
	return nil
}

func TestInsertsAreAPartOfTheWait(t *testing.T) {
	const ms = time.Millisecond
	for insert, want := range map[time.Duration]time.Duration{0: 1500 * ms, 400 * ms: 1500 * ms,
		10_000 * ms: 10_750 * ms} {
		synctest.Test(t, func(t *testing.T) {
			topic, store := pacedTopic{every: time.Minute, clicks: 2, began: time.Now()}, &batchStore{takes: insert}
			topic.bodies = visitorClicks(1)
			cfg := worker.Config{MaxBatch: 10_000, MaxWait: 1500 * ms, IdleWait: time.Hour, Pause: 50 * ms}
			p := worker.NewPartition(0, cfg, &topic, store, nil, slog.New(slog.DiscardHandler))
			for click := range 2 {
				_, err := p.Step(t.Context())
				testkit.Must(t, err)
				if late := time.Since(topic.began) - time.Duration(click+1)*topic.every; click == 1 &&
					(late < want || late > want+5*ms) {
					t.Errorf("with inserts of %v, a click is counted after %v, want %v", insert, late, want)
				}
			}
		})
	}
}

func TestWaitOfABatch(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name          string
		every         time.Duration
		clicks        int
		maxBatch      int
		counted       int
		after, within time.Duration
		fetches       int // including the fetch that meets the lane
	}{
		{"of one click", time.Hour, 1, 10_000, 1, time.Hour + 1500*ms, 5 * ms, 3},
		{"of few clicks", 100 * ms, 1000, 10_000, 16, 1600 * ms, 50 * ms, 4},
		{"that gets more than a few", 20 * ms, 1000, 10_000, 38, 770 * ms, 5 * ms, 3},
		{"of more than a few", 5 * ms, 1000, 10_000, 51, 255 * ms, 5 * ms, 2},
		{"of many clicks", ms, 1000, 10_000, 751, 751 * ms, 5 * ms, 12},
		{"of many clicks, the last ones", ms, 250, 10_000, 250, 751 * ms, 5 * ms, 3},
		{"that is full", ms, 1000, 500, 500, 500 * ms, 50 * ms, 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				topic, store := pacedTopic{every: test.every, clicks: test.clicks, began: began}, new(batchStore)
				topic.bodies = visitorClicks(1)
				cfg := worker.Config{MaxBatch: test.maxBatch, MaxWait: 1500 * ms, IdleWait: 2 * time.Hour, Pause: 50 * ms}
				p := worker.NewPartition(0, cfg, &topic, store, nil, slog.New(slog.DiscardHandler))
				_, err := p.Step(t.Context())
				testkit.Must(t, err)
				took := time.Since(began)
				if more := store.clicks - test.counted; more < 0 || more > int(test.within/test.every) {
					t.Errorf("%d clicks, want %d", store.clicks, test.counted)
				}
				if took < test.after || took > test.after+test.within {
					t.Errorf("inserted after %v, want %v", took, test.after)
				}
				testkit.Equal(t, "fetches", topic.fetches, test.fetches)
			})
		})
	}
}
