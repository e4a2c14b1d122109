package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"linkstream/schema"
	"linkstream/schema/span"
)

const (
	changesMaxBatch   = 512 // changes per request
	changesFetchWait  = 5 * time.Second
	changesFirstWait  = 100 * time.Millisecond
	changesRetryPause = 500 * time.Millisecond
)

// PublishChanges appends changes to the topic of changes, for every edge. If it fails, the topic may have some of them.
func (c *Client) PublishChanges(ctx context.Context, changes []schema.Change) error {
	now := time.Now()
	ctx, s := span.Root(ctx, "publish changes", trace.SpanKindProducer, now)
	defer s.End()
	s.SetAttributes(attribute.String("messaging.system", "kafka"),
		attribute.String("messaging.destination.name", c.cfg.Changes),
		attribute.Int64("messaging.batch.message_count", int64(len(changes))))
	for batch := range slices.Chunk(changes, changesMaxBatch) {
		records := make([]kafka.Record, len(batch))
		for i, change := range batch {
			key := []byte(change.Key())
			records[i] = kafka.Record{Time: now, Key: kafka.NewBytes(key), Value: kafka.NewBytes(key)}
		}
		if err := c.produceKeyed(ctx, c.cfg.Changes, 0, kafka.NewRecordReader(records...)); err != nil {
			span.Fail(s, err)
			return err
		}
	}
	return nil
}

// ChangeFollower receives the changes.
type ChangeFollower interface {
	// Drop is called for every change, perhaps more than once.
	Drop(schema.Change)
	// Missed is called when any change may have been missed.
	Missed()
	// Reached is called when every change before a position was passed to Drop, or missed; with current if there were no
	// others a moment ago. To follow from the position misses nothing.
	Reached(p schema.ChangePosition, current bool)
}

// FollowChanges follows the changes after a position until ctx is done, or the changes from now on if the position is
// zero or belongs to another log. While the broker is away it retries; if the topic is created again, it starts from
// the new end.
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
	current  bool   // the follower was called with current true
}

// beginning is the position before the first change, in any log.
const beginning = 1

// identity returns the identity of a log, derived from its record.
func identity(r Record) uint64 {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(r.Offset)),
		uint64(r.Time.UnixMilli())))
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
	r.follower.Missed() // after the end was read: values that are cached from now on are not older
	r.reached(true)
	return nil
}

// check compares the change before the position with the record in the log.
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
	if !r.current { // the follower waits for a call with current true
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
