package spool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"linkstream/schema"
	"linkstream/schema/stream"
)

// growRetry is the pause after a segment could not be created.
const growRetry = 100 * time.Millisecond

// Lane is a sequence of clicks in segments. Handlers append at its end, one at a time. One goroutine, the lane's
// shipper, reads from its beginning. They share the list of segments.
type Lane struct {
	id    schema.Lane
	spool *Spool

	seq       atomic.Uint64 // of the last click appended
	acked     atomic.Uint64 // of the last click acknowledged
	partition atomic.Uint32 // plus one; 0 while the lane has no partition
	// Unix milliseconds of the oldest click that was read and is not acknowledged; 0 without such a click
	oldest atomic.Int64

	waiting atomic.Bool   // the shipper waits in awaitClick
	arrived chan struct{} // wakes the shipper after an append; has room for one

	mu       sync.Mutex
	segments []*segment    // oldest first; the last one is active
	spare    *segment      // becomes active next; may be nil
	retryAt  time.Duration // uptime; no segment is created before
	closed   bool

	// Owned by the shipper.
	readSegment int           // index in segments
	readAt      place         // of the next record in that segment
	readFrom    uint64        // the first seq in that segment that is not acknowledged
	readSeq     uint64        // of the last click read
	skipped     uint64        // the last damaged click that was reported
	head        []byte        // scratch
	maxBatch    int           // bytes of a batch: at most as many as the topic accepts, once a refusal has shown its limit
	lost        bool          // the topic does not have the lane's partition
	lostAt      time.Duration // uptime when that was first seen
}

func newLane(s *Spool, id schema.Lane) *Lane {
	return &Lane{id: id, spool: s, readAt: start, maxBatch: s.cfg.batchBytes(), arrived: make(chan struct{}, 1)}
}

// ID returns the lane's identity.
func (l *Lane) ID() schema.Lane { return l.id }

// Recovered reports whether an earlier process has written the lane. Nothing is appended to such a lane.
func (l *Lane) Recovered() bool { return l.id.Incarnation != l.spool.incarnation }

// Pending returns the number of clicks that are not acknowledged.
func (l *Lane) Pending() uint64 { return l.seq.Load() - l.acked.Load() }

func (l *Lane) append(c *schema.Click) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.appendLocked(c, true)
}

// tryAppend is append without I/O and without waiting for mu, which others hold during I/O.
func (l *Lane) tryAppend(c *schema.Click) bool {
	if !l.mu.TryLock() {
		return false
	}
	defer l.mu.Unlock()
	return l.appendLocked(c, false)
}

// appendLocked appends c. Only with mayCreate it creates a segment if there is no spare. Callers hold mu.
func (l *Lane) appendLocked(c *schema.Click, mayCreate bool) bool {
	if n := len(l.segments); n == 0 || !l.segments[n-1].append(c) {
		if l.spare == nil && !mayCreate || !l.extend() || !l.segments[len(l.segments)-1].append(c) {
			return false
		}
	}
	l.seq.Add(1)
	if l.waiting.Load() && l.waiting.Swap(false) {
		select {
		case l.arrived <- struct{}{}:
		default: // the shipper has yet to take an earlier one
		}
	}
	return true
}

// awaitClick waits until a click with a seq above last is appended, or ctx is done. It may return early. Only the
// shipper calls it.
func (l *Lane) awaitClick(ctx context.Context, last uint64) {
	l.waiting.Store(true)
	if l.seq.Load() != last { // it was appended before waiting was set
		l.waiting.Store(false)
		return
	}
	select {
	case <-l.arrived:
	case <-ctx.Done():
		l.waiting.Store(false)
	}
}

// extend makes the spare the active segment. If there is no spare, because createSpares has fallen behind or the spool
// was full, it creates a segment. It reports false if that fails. Callers hold mu.
func (l *Lane) extend() bool {
	n := len(l.segments)
	// A segment without a record whose first page is missing: the next one may be no better.
	useless := n > 0 && l.segments[n-1].faulty.Load() && l.segments[n-1].written.Load() == headerLen
	if (l.spare == nil || useless) && (l.closed || l.spool.cfg.Uptime() < l.retryAt) {
		return false
	}
	if useless {
		l.retryAt = l.spool.cfg.Uptime() + growRetry
	}
	next := l.spare
	l.spare = nil
	if next == nil {
		var err error
		if next, err = l.spool.newSegment(l.id.Number, false); err != nil {
			l.retryAt = l.spool.cfg.Uptime() + growRetry
			return false
		}
	}
	if err := next.activate(l.id, l.partition.Load(), l.seq.Load()+1); err != nil {
		l.spool.faults.Add(1)
		l.retryAt = l.spool.cfg.Uptime() + growRetry
		_ = l.spool.removeSegment(next) // the next process removes it otherwise
		return false
	}
	if n > 0 {
		l.segments[n-1].sealed.Store(true)
		if l.segments[n-1].faulty.Load() {
			l.spool.faults.Add(1)
		}
	}
	l.segments = append(l.segments, next)
	l.spool.unsynced.Store(true)
	l.spool.requestSpare(l)
	return true
}

// setSpare gives the lane a spare and reports whether the lane needed it.
func (l *Lane) setSpare(s *segment) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spare != nil {
		return false
	}
	l.spare = s
	return true
}

// Read appends the clicks after the last one read to batch, in order, until batch holds at least maxBytes or there are
// no more clicks. It returns the number of clicks appended. It copies them, so batch stays valid after Acknowledge. It
// skips and logs damaged clicks; the others keep their seqs. Only one goroutine may call Read and Acknowledge.
func (l *Lane) Read(batch *stream.Batch, maxBytes int) int {
	before := batch.Len()
	for s := l.segment(l.readSegment); s != nil && batch.Size() < maxBytes; {
		if l.readAt == start {
			l.readSeq = s.firstSeq - 1 // the segment before may have been damaged or lost
			l.readFrom = s.acknowledgedSeq() + 1
		}
		sealed := s.sealed.Load() // before readRecord, which then sees every record of a sealed segment
		switch {
		case l.readRecord(s, batch):
		case sealed:
			l.checkEnd(s)
			s = l.readNext()
		default:
			return batch.Len() - before
		}
	}
	return batch.Len() - before
}

// readRecord reads the next record of s, if there is one, and appends it to batch unless it is acknowledged.
func (l *Lane) readRecord(s *segment, batch *stream.Batch) bool {
	body, at := s.next(l.readAt)
	if body == nil {
		return false
	}
	seq := s.firstSeq + uint64(at.index)
	if at.pos > l.readAt.pos {
		l.skip(s, seq-1)
	}
	if seq >= l.readFrom {
		l.head = schema.AppendClickIdentity(l.head[:0], l.id, seq)
		if guarded(func() { batch.Append(l.head, body) }) != nil {
			l.skip(s, seq)
		}
	}
	l.readAt, l.readSeq = place{at.pos + recordLen(len(body)), at.index + 1}, seq
	return true
}

// checkEnd reports damage behind the last record of a segment that gets no more.
func (l *Lane) checkEnd(s *segment) {
	unfinished, damaged := s.rest(l.readAt)
	last := l.readSeq
	if next := l.segment(l.readSegment + 1); next != nil {
		last = max(last, next.firstSeq-1)
	}
	if damaged || unfinished && last > l.readSeq {
		l.skip(s, max(last, l.readSeq+1))
	}
}

// skip notes that the clicks after the last one read, up to seq last, are damaged. Their segment is set aside when it
// is released.
func (l *Lane) skip(s *segment, last uint64) {
	if !s.damaged.Swap(true) {
		l.spool.damaged.Add(1)
	}
	if last > l.skipped { // else Read began again
		l.skipped = last
		l.spool.log.Error("clicks in a spool segment are damaged, skipping them", "path", s.path, "lane", l.id.Number,
			"incarnation", l.id.Incarnation, "first", l.readSeq+1, "last", last)
	}
}

// rewind lets Read begin again after the last click acknowledged.
func (l *Lane) rewind() { l.readSegment, l.readAt = 0, start }

// readNext moves to the next segment and returns it, or nil without a next segment.
func (l *Lane) readNext() *segment {
	l.readSegment++
	l.readAt = start
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

// Acknowledge declares that every click read so far is durable elsewhere, and removes the segments that are not needed
// any more. An error means that a file could not be removed; the clicks are acknowledged nevertheless.
func (l *Lane) Acknowledge() error {
	l.acked.Store(max(l.readSeq, l.acked.Load()))
	if s := l.segment(l.readSegment); s != nil {
		s.setAcknowledged(l.readSeq)
	}
	return l.release(l.readSegment)
}

// release removes the first n segments, except for the active one. Before the last segment of a lane it notes the
// lane's end.
func (l *Lane) release(n int) error {
	l.mu.Lock()
	done := 0
	for done < min(n, len(l.segments)) && l.segments[done].sealed.Load() {
		done++
	}
	released := slices.Clone(l.segments[:done])
	l.mu.Unlock()
	for _, s := range released { // nothing is appended to them
		if err := l.spool.limited.noteSegment(l.id, s); err != nil {
			return err // the segments stay until the next release
		}
	}
	l.mu.Lock()
	l.segments = slices.Delete(l.segments, 0, done)
	ends := done > 0 && len(l.segments) == 0
	l.mu.Unlock()
	if ends {
		l.spool.noteLaneEnd(l)
	}
	l.readSegment -= done
	var errs []error
	for _, s := range released {
		errs = append(errs, l.spool.removeSegment(s))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove segments of lane %d of %s: %w", l.id.Number, l.id.Incarnation, err)
	}
	return nil
}

// Partition returns the partition that the lane is bound to, and whether it is bound to one.
func (l *Lane) Partition() (int, bool) {
	p := l.partition.Load()
	return int(p) - 1, p > 0
}

// bind binds the lane to a partition, across restarts and power failures. Consumers recognize a repeated click by a
// mark that they keep per partition and lane, so a lane keeps its partition as long as the topic has it. bind must
// return without an error before the next click is sent.
func (l *Lane) bind(partition int) error {
	l.mu.Lock()
	before := l.partition.Swap(uint32(partition) + 1) // activate writes it into later segments
	segments := slices.Clone(l.segments)
	l.mu.Unlock()
	var errs []error
	for _, s := range segments {
		errs = append(errs, s.setPartition(uint32(partition)+1))
	}
	err := errors.Join(errs...)
	if err != nil {
		l.partition.Store(before) // the next attempt to send binds again
	}
	return err
}

// close removes the segments without pending clicks and unmaps the others. Appends fail afterwards. A recovered lane
// stays unless its shipper has retired it: it may have damage, which does not count as pending and must be reported
// first.
func (l *Lane) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	shipped := l.Pending() == 0 && !l.Recovered()
	for _, s := range l.segments {
		shipped = shipped && l.spool.limited.noteSegment(l.id, s) == nil
	}
	if shipped {
		l.spool.noteLaneEnd(l)
	}
	if l.spare != nil {
		l.segments = append(l.segments, l.spare)
	}
	var errs []error
	for _, seg := range l.segments {
		if seg == l.spare || shipped {
			errs = append(errs, l.spool.removeSegment(seg))
		} else {
			errs = append(errs, seg.unmap())
		}
	}
	l.segments, l.spare = nil, nil
	l.closed = true
	return errors.Join(errs...)
}
