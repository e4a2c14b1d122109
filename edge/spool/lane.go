package spool

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"linkstream/schema"
	"linkstream/schema/stream"
)

// growRetry is how long a lane that could not get a segment waits before it asks again.
const growRetry = 100 * time.Millisecond

// Lane is a sequence of clicks in segments. Handlers append at its end, one at a time; its shipper alone reads at its
// front. The two meet in the list of segments.
type Lane struct {
	id    schema.Lane
	spool *Spool

	seq       atomic.Uint64 // of the last click appended
	acked     atomic.Uint64 // of the last click acknowledged
	partition atomic.Uint32 // plus one; 0 while the lane is bound to none

	mu       sync.Mutex
	segments []*segment // oldest first; the last one takes the appends
	spare    *segment   // the next one, made ahead of time
	retryAt  time.Time  // when to ask for a segment again
	closed   bool

	// The shipper's own.
	readSegment int    // index in segments
	readPos     int    // in that segment
	readSeq     uint64 // of the last click read
	head        []byte // scratch
}

func newLane(s *Spool, id schema.Lane) *Lane { return &Lane{id: id, spool: s, readPos: headerLen} }

// ID returns the lane's identity.
func (l *Lane) ID() schema.Lane { return l.id }

// Leftover reports whether the lane is of an earlier process, so that no click will be added to it.
func (l *Lane) Leftover() bool { return l.id.Incarnation != l.spool.incarnation }

// Pending returns the number of clicks that are not acknowledged.
func (l *Lane) Pending() uint64 { return l.seq.Load() - l.acked.Load() }

func (l *Lane) append(c *schema.Click) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.segments); n == 0 || !l.segments[n-1].append(c) {
		if !l.extend() || !l.segments[len(l.segments)-1].append(c) {
			return false
		}
	}
	l.seq.Add(1)
	return true
}

// extend puts a new segment at the lane's end: the spare or, where the one who makes spares has fallen behind, one made
// here and now. It reports false when the spool is full or the disk refuses. Callers hold mu.
func (l *Lane) extend() bool {
	next := l.spare
	l.spare = nil
	if next == nil {
		if l.closed || time.Now().Before(l.retryAt) {
			return false
		}
		var err error
		if next, err = l.spool.newSegment(l.id.Number); err != nil {
			l.retryAt = time.Now().Add(growRetry)
			return false
		}
	}
	next.begin(l.id, l.partition.Load(), l.seq.Load()+1)
	if n := len(l.segments); n > 0 {
		l.segments[n-1].sealed.Store(true)
	}
	l.segments = append(l.segments, next)
	l.spool.wantSpare(l)
	return true
}

// setSpare hands the lane a segment to extend by, unless it has one. It reports whether it took it.
func (l *Lane) setSpare(s *segment) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spare != nil {
		return false
	}
	l.spare = s
	return true
}

// Read appends the clicks that follow the last one read to batch, in order, until batch holds maxBytes or there are no
// more. It returns the number of clicks it appended. One goroutine at a time reads and acknowledges.
func (l *Lane) Read(batch *stream.Batch, maxBytes int) int {
	before := batch.Len()
	for s := l.segment(l.readSegment); s != nil && batch.Size() < maxBytes; {
		if l.readPos == headerLen {
			l.readSeq = s.firstSeq - 1 // the segment says itself where it stands in the lane
		}
		sealed := s.sealed.Load() // first: what was appended before the seal is then seen below
		body, err := s.record(l.readPos)
		switch {
		case err != nil:
			l.spool.log.Error("spool segment is damaged, the rest of it is lost", "path", s.path, "error", err)
			s = l.readNext()
		case body != nil:
			l.readPos += recordLen(len(body))
			l.readSeq++
			if l.readSeq > s.acknowledged().Load() {
				l.head = schema.AppendClickIdentity(l.head[:0], l.id, l.readSeq)
				batch.Append(l.head, body)
			}
		case sealed:
			s = l.readNext()
		default:
			return batch.Len() - before
		}
	}
	return batch.Len() - before
}

// readNext moves on to the next segment and returns it, if it is there yet.
func (l *Lane) readNext() *segment {
	l.readSegment++
	l.readPos = headerLen
	return l.segment(l.readSegment)
}

func (l *Lane) segment(i int) *segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i >= len(l.segments) {
		return nil
	}
	return l.segments[i]
}

// Acknowledge says that every click read so far is durable elsewhere, and releases the segments that are done with.
func (l *Lane) Acknowledge() error {
	l.acked.Store(max(l.readSeq, l.acked.Load()))
	if s := l.segment(l.readSegment); s != nil {
		s.acknowledged().Store(l.readSeq)
	}
	return l.release(l.readSegment)
}

// release removes the first n segments, but never one that may still be appended to.
func (l *Lane) release(n int) error {
	l.mu.Lock()
	done := 0
	for done < min(n, len(l.segments)) && l.segments[done].sealed.Load() {
		done++
	}
	released := slices.Clone(l.segments[:done])
	l.segments = slices.Delete(l.segments, 0, done)
	l.mu.Unlock()
	l.readSegment -= done
	var errs []error
	for _, s := range released {
		errs = append(errs, l.spool.removeSegment(s))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("release lane %d of %s: %w", l.id.Number, l.id.Incarnation, err)
	}
	return nil
}

// Partition returns the partition that the lane is bound to, and whether it is bound.
func (l *Lane) Partition() (int, bool) {
	p := l.partition.Load()
	return int(p) - 1, p > 0
}

// bind fixes the lane's partition for good, also across restarts and losses of power: a repeated click must meet its
// lane's mark, and marks are kept by partition. It must come before the first click is sent.
func (l *Lane) bind(partition int) error {
	l.mu.Lock()
	l.partition.Store(uint32(partition) + 1)
	segments := slices.Clone(l.segments)
	l.mu.Unlock()
	var errs []error
	for _, s := range segments { // a later one begins with it
		s.word(offPartition).Store(uint32(partition) + 1)
		errs = append(errs, s.syncHeader())
	}
	return errors.Join(errs...)
}

// close deletes what nobody needs and leaves the rest to the next process. A click that comes after finds no room. A
// leftover lane is retired by its shipper or stays: what of it is damaged does not count as pending.
func (l *Lane) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spare != nil {
		l.segments = append(l.segments, l.spare)
	}
	var errs []error
	for _, seg := range l.segments {
		if seg == l.spare || l.Pending() == 0 && !l.Leftover() {
			errs = append(errs, seg.remove())
		} else {
			errs = append(errs, seg.unmap())
		}
	}
	l.segments, l.spare = nil, nil
	l.closed = true
	return errors.Join(errs...)
}
