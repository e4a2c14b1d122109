package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"linkstream/schema"
	"linkstream/schema/span"
)

const (
	changesQueueLen   = 4096 // changes waiting to be sent, and as many of new links
	changesMaxBatch   = 512  // changes per request
	changesFetchWait  = 5 * time.Second
	changesFirstWait  = 100 * time.Millisecond
	changesRetryPause = 500 * time.Millisecond
	// changesLinger is how long a publisher waits for a batch to fill. Clients often create many links at once, and a
	// request costs more than a record.
	changesLinger = 20 * time.Millisecond
	// changesNewWait is how long whoever creates many links waits for room in the queue.
	changesNewWait = 100 * time.Millisecond
)

// InvalidationPublisher publishes changes to the changes topic, so that every node drops its cached copies. Publish never
// blocks: when the queue is full it drops the change, and the caches' TTL bounds how long their entries stay stale.
type InvalidationPublisher struct {
	client  *Client
	queue   chan schema.Change
	created chan schema.Change // of new links: they never displace what is in queue
	dropped atomic.Int64       // changes since the last successful send
	log     *slog.Logger
}

// NewInvalidationPublisher returns a publisher. It sends nothing until Run is called.
func NewInvalidationPublisher(client *Client, log *slog.Logger) *InvalidationPublisher {
	return &InvalidationPublisher{client: client, queue: make(chan schema.Change, changesQueueLen),
		created: make(chan schema.Change, changesQueueLen), log: log}
}

// Publish queues a change.
func (p *InvalidationPublisher) Publish(change schema.Change) {
	select {
	case p.queue <- change:
	default:
		p.drop(1)
	}
}

// PublishNew queues the changes of links that are new. They have a queue of their own and are sent after other changes, so that an
// import delays no link that has to stop. If the queue is full it waits for 100 ms, and then drops the rest: few visitors come
// before a link is there.
func (p *InvalidationPublisher) PublishNew(changes []schema.Change) {
	var timeout <-chan time.Time
	for i, change := range changes {
		select {
		case p.created <- change:
			continue
		default:
		}
		if timeout == nil {
			timeout = time.After(changesNewWait)
		}
		select {
		case p.created <- change:
		case <-timeout:
			p.drop(int64(len(changes) - i))
			return
		}
	}
}

func (p *InvalidationPublisher) drop(n int64) {
	if p.dropped.Add(n) == n { // log the first of possibly thousands per second
		p.log.Warn("the queue of changes is full, dropping changes")
	}
}

// Run sends queued changes until ctx is done, then sends the rest of the queue unless a send fails.
func (p *InvalidationPublisher) Run(ctx context.Context) {
	sending := context.WithoutCancel(ctx)
	for {
		select {
		case <-ctx.Done():
			for p.queued() > 0 && p.send(sending, p.nextBatch(nil)) == nil {
				continue
			}
			return
		case change := <-p.queue:
			p.sendWith(ctx, change)
		case change := <-p.created:
			p.sendWith(ctx, change)
		}
	}
}

// queued returns the number of queued changes.
func (p *InvalidationPublisher) queued() int { return len(p.queue) + len(p.created) }

// sendWith sends a batch that begins with a change, until it succeeds or ctx is done.
func (p *InvalidationPublisher) sendWith(ctx context.Context, first schema.Change) {
	if p.queued() < changesMaxBatch {
		Sleep(ctx, changesLinger)
	}
	changes := p.nextBatch([]schema.Change{first})
	for p.send(context.WithoutCancel(ctx), changes) != nil && ctx.Err() == nil {
		Sleep(ctx, changesRetryPause)
	}
}

// nextBatch appends queued changes to a batch, as far as they fit into one request.
func (p *InvalidationPublisher) nextBatch(changes []schema.Change) []schema.Change {
	for _, queue := range []chan schema.Change{p.queue, p.created} {
		for len(queue) > 0 && len(changes) < changesMaxBatch {
			changes = append(changes, <-queue)
		}
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
	ctx, s := span.Root(ctx, "publish changes", span.Producer, now)
	defer s.End()
	s.SetString("messaging.system", "kafka")
	s.SetString("messaging.destination.name", p.client.cfg.Changes)
	s.SetInt("messaging.batch.message_count", int64(len(changes)))
	err := p.client.produceKeyed(ctx, p.client.cfg.Changes, 0, kafka.NewRecordReader(records...))
	s.Fail(err)
	if err != nil {
		p.log.Warn("cannot publish changes", "changes", len(changes), "error", err)
		return err
	}
	if n := p.dropped.Swap(0); n > 0 {
		p.log.Warn("publishing changes again, some were dropped", "changes", n)
	}
	return nil
}

// ChangeFollower is told what changes. Its methods are called by one goroutine.
type ChangeFollower interface {
	// Drop is called for every change, perhaps more than once.
	Drop(schema.Change)
	// Missed is called when any change may have been missed.
	Missed()
	// Reached is called when every change before a position was passed to Drop, or missed; with current if there were no others a
	// moment ago. To follow from the position misses nothing.
	Reached(p schema.ChangePosition, current bool)
}

// FollowChanges follows the changes after a position until ctx is done, or those from now on if the position is zero or belongs
// to another log. While the broker is away it retries; if the topic is created anew, it starts from the new end.
func (c *Client) FollowChanges(ctx context.Context, from schema.ChangePosition, follower ChangeFollower) {
	r := changeReader{client: c, follower: follower, next: from.Next, last: from.Last}
	step := r.check
	if from.Last == 0 {
		step = r.begin
	}
	for ctx.Err() == nil {
		err := step(ctx)
		switch {
		case err == nil:
			step = r.read
		case errors.Is(err, ErrOffsetOutOfRange), errors.Is(err, errOtherLog):
			step = r.begin
			fallthrough
		default:
			if ctx.Err() == nil {
				c.log.Info("cannot follow changes, retrying", "error", err)
				Sleep(ctx, changesRetryPause)
			}
		}
	}
}

// errOtherLog means that the topic does not have the change before a position.
var errOtherLog = errors.New("the log of changes is another one, or has been compacted")

// changeReader reads the log of changes.
type changeReader struct {
	client   *Client
	follower ChangeFollower
	next     int64  // offset
	last     uint64 // see schema.ChangePosition; 0 if it is unknown
	current  bool   // the follower was told that there were no other changes
}

// beginning is the position before the first change, in any log.
const beginning = 1

// identity returns what identifies a log that has the record.
func identity(r Record) uint64 {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(r.Offset)), uint64(r.Time.UnixMilli())))
	h.Write(r.Value)
	return max(h.Sum64(), beginning+1)
}

// begin goes to the end of the log, behind its last change.
func (r *changeReader) begin(ctx context.Context) error {
	_, end, err := r.client.offsets(ctx, r.client.cfg.Changes, 0)
	if err != nil {
		return err
	}
	r.next, r.last, r.current = end, 0, false
	if end == 0 {
		r.last = beginning
	} else if _, err := r.fetch(ctx, end-1, func(record Record) error {
		r.next, r.last = record.Offset+1, identity(record)
		return nil
	}); err != nil {
		return err
	}
	r.follower.Missed() // after the end was read: what is cached from now on is not older
	r.reached(true)
	return nil
}

// check compares the change before the position with that of the log.
func (r *changeReader) check(ctx context.Context) error {
	if r.last == beginning {
		return nil
	}
	found := uint64(0)
	_, err := r.fetch(ctx, r.next-1, func(record Record) error {
		found = identity(record)
		return errStop
	})
	if err != nil && !errors.Is(err, errStop) {
		return err
	}
	if found != r.last {
		return errOtherLog
	}
	return nil
}

// read passes on changes that follow the position.
func (r *changeReader) read(ctx context.Context) error {
	before := r.next
	lag, err := r.fetch(ctx, r.next, func(record Record) error {
		if change, ok := schema.ParseChange(string(record.Value)); ok {
			r.follower.Drop(change)
		}
		r.next, r.last = record.Offset+1, identity(record)
		return nil
	})
	if r.next > before || err == nil && lag == 0 && !r.current {
		r.reached(err == nil && lag == 0)
	}
	return err
}

func (r *changeReader) fetch(ctx context.Context, offset int64, each func(Record) error) (lag int64, err error) {
	wait := changesFetchWait
	if !r.current { // the follower waits to hear that there are no others
		wait = changesFirstWait
	}
	return r.client.fetch(ctx, r.client.cfg.Changes, 0, offset, maxFetchBytes, wait, each)
}

func (r *changeReader) reached(current bool) {
	r.current = r.current || current
	if r.last != 0 {
		r.follower.Reached(schema.ChangePosition{Next: r.next, Last: r.last}, current)
	}
}
