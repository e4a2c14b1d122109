package stream

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"linkstream/schema"
)

const (
	changesQueue = 4096 // changes that wait to be sent
	changesBatch = 512  // of them in one request
	changesWait  = 5 * time.Second
	changesRetry = 500 * time.Millisecond
	// changesLinger is how long fewer than that gather: many links are made at a time, and a request costs more than a
	// record.
	changesLinger = 20 * time.Millisecond
)

// InvalidationPublisher publishes changes to every node that follows them, so that caches drop what has changed. It never
// blocks its caller: a change that finds the queue full is dropped, and the cache TTL bounds how long an entry stays stale.
type InvalidationPublisher struct {
	client  *Client
	queue   chan schema.Change
	dropped atomic.Int64 // changes since the last successful send
	log     *slog.Logger
}

// NewInvalidationPublisher returns a publisher that sends while Run runs.
func NewInvalidationPublisher(client *Client, log *slog.Logger) *InvalidationPublisher {
	return &InvalidationPublisher{client: client, queue: make(chan schema.Change, changesQueue), log: log}
}

// Publish queues a change.
func (p *InvalidationPublisher) Publish(change schema.Change) {
	select {
	case p.queue <- change:
	default:
		if p.dropped.Add(1) == 1 { // thousands a second may follow
			p.log.Warn("changes are not announced, too many are waiting")
		}
	}
}

// Run sends queued changes until ctx is done, then sends the rest of the queue if the broker answers.
func (p *InvalidationPublisher) Run(ctx context.Context) {
	sending := context.WithoutCancel(ctx)
	for {
		select {
		case <-ctx.Done():
			for len(p.queue) > 0 && p.send(sending, p.waiting(<-p.queue)) == nil {
				continue
			}
			return
		case change := <-p.queue:
			if len(p.queue) < changesBatch {
				Sleep(ctx, changesLinger)
			}
			changes := p.waiting(change)
			for p.send(sending, changes) != nil && ctx.Err() == nil {
				Sleep(ctx, changesRetry)
			}
		}
	}
}

// waiting returns first and what waits behind it.
func (p *InvalidationPublisher) waiting(first schema.Change) []schema.Change {
	changes := []schema.Change{first}
	for len(p.queue) > 0 && len(changes) < changesBatch {
		changes = append(changes, <-p.queue)
	}
	return changes
}

func (p *InvalidationPublisher) send(ctx context.Context, changes []schema.Change) error {
	now := time.Now()
	records := make([]kafka.Record, len(changes))
	for i, change := range changes {
		key := []byte(change.Key())
		records[i] = kafka.Record{Time: now, Key: kafka.NewBytes(key), Value: kafka.NewBytes(key)}
	}
	err := p.client.produceRecords(ctx, p.client.cfg.Changes, 0, kafka.NewRecordReader(records...))
	if err != nil {
		p.log.Warn("changes cannot be announced", "changes", len(changes), "error", err)
		return err
	}
	if n := p.dropped.Swap(0); n > 0 {
		p.log.Warn("changes are announced again, some were not", "changes", n)
	}
	return nil
}

// FollowChanges calls each for every change that is announced from now on, until ctx is done. A change may come more
// than once.
func (c *Client) FollowChanges(ctx context.Context, each func(schema.Change)) {
	next, known := int64(0), false
	for ctx.Err() == nil {
		err := error(nil)
		if !known {
			_, next, err = c.offsets(ctx, c.cfg.Changes, 0)
			known = err == nil
		} else {
			_, err = c.fetch(ctx, c.cfg.Changes, 0, next, changesWait, func(r Record) error {
				next = r.Offset + 1
				if change, ok := schema.ParseChange(string(r.Value)); ok {
					each(change)
				}
				return nil
			})
			known = !errors.Is(err, ErrOffsetOutOfRange) // the topic was made anew: begin at its end
		}
		if err != nil && ctx.Err() == nil {
			c.log.Info("changes cannot be followed, trying again", "error", err)
			Sleep(ctx, changesRetry)
		}
	}
}
