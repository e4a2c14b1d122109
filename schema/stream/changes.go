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
	changesQueueLen   = 4096 // changes waiting to be sent
	changesMaxBatch   = 512  // changes per request
	changesFetchWait  = 5 * time.Second
	changesRetryPause = 500 * time.Millisecond
	// changesLinger is how long a publisher waits for a batch to fill. Clients often create many links at once, and a
	// request costs more than a record.
	changesLinger = 20 * time.Millisecond
)

// InvalidationPublisher publishes changes to the changes topic, so that every node drops its cached copies. Publish never
// blocks: when the queue is full it drops the change, and the caches' TTL bounds how long their entries stay stale.
type InvalidationPublisher struct {
	client  *Client
	queue   chan schema.Change
	dropped atomic.Int64 // changes since the last successful send
	log     *slog.Logger
}

// NewInvalidationPublisher returns a publisher. It sends nothing until Run is called.
func NewInvalidationPublisher(client *Client, log *slog.Logger) *InvalidationPublisher {
	return &InvalidationPublisher{client: client, queue: make(chan schema.Change, changesQueueLen), log: log}
}

// Publish queues a change.
func (p *InvalidationPublisher) Publish(change schema.Change) {
	select {
	case p.queue <- change:
	default:
		if p.dropped.Add(1) == 1 { // log the first of possibly thousands per second
			p.log.Warn("the queue of changes is full, dropping changes")
		}
	}
}

// Run sends queued changes until ctx is done, then sends the rest of the queue unless a send fails.
func (p *InvalidationPublisher) Run(ctx context.Context) {
	sending := context.WithoutCancel(ctx)
	for {
		select {
		case <-ctx.Done():
			for len(p.queue) > 0 && p.send(sending, p.nextBatch(<-p.queue)) == nil {
				continue
			}
			return
		case change := <-p.queue:
			if len(p.queue) < changesMaxBatch {
				Sleep(ctx, changesLinger)
			}
			changes := p.nextBatch(change)
			for p.send(sending, changes) != nil && ctx.Err() == nil {
				Sleep(ctx, changesRetryPause)
			}
		}
	}
}

// nextBatch returns first and the queued changes that fit into one request with it.
func (p *InvalidationPublisher) nextBatch(first schema.Change) []schema.Change {
	changes := []schema.Change{first}
	for len(p.queue) > 0 && len(changes) < changesMaxBatch {
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
	err := p.client.produceKeyed(ctx, p.client.cfg.Changes, 0, kafka.NewRecordReader(records...))
	if err != nil {
		p.log.Warn("cannot publish changes", "changes", len(changes), "error", err)
		return err
	}
	if n := p.dropped.Swap(0); n > 0 {
		p.log.Warn("publishing changes again, some were dropped", "changes", n)
	}
	return nil
}

// FollowChanges calls each for every change that is published from now on, until ctx is done. It may deliver a change
// more than once. While the broker is away it retries; if the topic is created anew, it starts from the new end.
func (c *Client) FollowChanges(ctx context.Context, each func(schema.Change)) {
	next, positioned := int64(0), false
	for ctx.Err() == nil {
		err := error(nil)
		if !positioned {
			_, next, err = c.offsets(ctx, c.cfg.Changes, 0)
			positioned = err == nil
		} else {
			_, err = c.fetch(ctx, c.cfg.Changes, 0, next, maxFetchBytes, changesFetchWait, func(r Record) error {
				next = r.Offset + 1
				if change, ok := schema.ParseChange(string(r.Value)); ok {
					each(change)
				}
				return nil
			})
			positioned = !errors.Is(err, ErrOffsetOutOfRange)
		}
		if err != nil && ctx.Err() == nil {
			c.log.Info("cannot follow changes, retrying", "error", err)
			Sleep(ctx, changesRetryPause)
		}
	}
}
