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

// pacedTopic has some clicks every 10 ms, until none is left.
type pacedTopic struct {
	endlessTopic
	clicks, left int
}

func (p *pacedTopic) Fetch(ctx context.Context, partition int, offset int64, wait time.Duration,
	each func(stream.Record) error) (int64, error) {
	if p.left == 0 {
		time.Sleep(wait)
		return 0, nil
	}
	time.Sleep(min(wait, 10*time.Millisecond))
	for range min(p.clicks, p.left) {
		p.value = append(schema.AppendClickIdentity(p.value[:0], lane(1), p.seq+1), p.bodies[0]...)
		if err := each(stream.Record{Offset: offset, Time: noon, Value: p.value}); err != nil {
			return 0, err
		}
		p.left--
		p.seq++
		offset++
	}
	return int64(p.left), nil
}

// batchStore notes the clicks of the first batch.
type batchStore struct {
	discardStore
	clicks int
}

func (s *batchStore) InsertClicks(_ context.Context, batch *schema.ClickBatch) error {
	s.clicks = batch.Len()
	return nil
}

func TestWaitOfABatch(t *testing.T) {
	for _, test := range []struct {
		name         string
		paced        pacedTopic
		maxBatch     int
		clicks       int
		after, until time.Duration
	}{
		{"on a quiet partition", pacedTopic{clicks: 1, left: 1000}, 1050, 20, 200, 210},
		{"on a busy partition", pacedTopic{clicks: 1, left: 1000}, 1000, 80, 800, 810},
		{"until it is full", pacedTopic{clicks: 10, left: 1000}, 500, 500, 490, 510},
		{"while records come", pacedTopic{clicks: 1, left: 40}, 1000, 40, 590, 610},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				topic, store := test.paced, new(batchStore)
				topic.bodies = visitorClicks(1)
				cfg := worker.Config{MaxBatch: test.maxBatch, MaxWait: 200 * time.Millisecond, IdleWait: time.Hour}
				p := worker.NewPartition(0, cfg, &topic, store, nil, slog.New(slog.DiscardHandler))
				began := time.Now()
				_, err := p.Step(t.Context())
				testkit.Must(t, err)
				took := time.Since(began) / time.Millisecond
				if store.clicks != test.clicks || took < test.after || took > test.until {
					t.Errorf("%d clicks after %d ms, want %d after %d to %d ms", store.clicks, took, test.clicks, test.after, test.until)
				}
			})
		})
	}
}
