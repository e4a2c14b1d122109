package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"linkstream/ingest/count"
	"linkstream/schema"
	"linkstream/schema/stream"
)

const (
	// verifyWait bounds the wait for a record that the log has.
	verifyWait = 5 * time.Second
	// verifyRecords is the number of records before the last counted click that are compared with the marks.
	verifyRecords = 100
)

var (
	errVerified   = errors.New("verified") // ends a fetch after its first record
	errLogChanged = errors.New("the log is not the one that was counted")
)

// loadPosition loads the position from the store, and checks that the log is the one that was counted. If the check
// finds another log or cannot decide, the batch begins a new epoch at the start of the log. This is always safe: the
// marks drop every click that was counted before.
func (p *Partition) loadPosition(ctx context.Context) error {
	position, err := p.store.Position(ctx, p.number)
	if err != nil {
		return fmt.Errorf("read position of partition %d: %w", p.number, err)
	}
	p.last = position.Last
	p.builder.Forget()
	p.resetBatch(position.Epoch, position.Next)
	doubt, start, err := p.verifyLog(ctx)
	if err != nil {
		return err
	}
	switch {
	case doubt != "":
		p.beginEpoch(start, doubt)
	case position.Next > start:
		// The records after the last counted click were dropped. They are read again, because the log may have ended in
		// between and have other records there now.
		p.batch.Next = p.last.Offset + 1
	}
	p.status.setNext(p.number, p.batch.Next)
	return nil
}

// resetBatch empties the batch, which begins where the store is.
func (p *Partition) resetBatch(epoch uint32, next int64) {
	p.batch.Reset(p.number, next)
	p.batch.BaseEpoch, p.batch.Epoch = epoch, epoch
}

// beginEpoch makes the batch the first one of a new epoch. Its first click stores the epoch.
func (p *Partition) beginEpoch(start int64, doubt string) {
	p.log.Error("the log may not be the one that was counted, counting it from its start", "reason", doubt,
		"counted", p.batch.Base, "epoch", p.batch.BaseEpoch, "last_click", p.last.Offset, "start", start)
	p.status.epochs.Inc()
	p.batch.Epoch, p.batch.Next = p.batch.BaseEpoch+1, start
}

// passed reports whether an offset is before the position in the log that the position belongs to.
func (p *Partition) passed(offset int64) bool {
	return offset < p.batch.Base && p.batch.Epoch == p.batch.BaseEpoch
}

// beginEpochAfterNewClick begins a new epoch because the log has a click before the position that was not counted. The
// batch is empty: it has been reading what was dropped before.
func (p *Partition) beginEpochAfterNewClick(ctx context.Context) error {
	start, _, err := p.topic.Offsets(ctx, p.number)
	if err != nil {
		return err
	}
	p.beginEpoch(start, "it has another click between the last counted one and the position")
	return nil
}

// verifyLog returns the log start offset, and the reason why the log may not be the one of the store's position and
// marks, or "". It looks for the last counted click. A log that starts at the position or after it has no counted
// records, and needs no check.
func (p *Partition) verifyLog(ctx context.Context) (doubt string, start int64, err error) {
	next := p.batch.Base
	if next == 0 {
		return "", 0, nil
	}
	start, end, err := p.topic.Offsets(ctx, p.number)
	switch {
	case err != nil:
		return "", 0, err
	case next <= start:
		return "", start, nil
	case next > end:
		return fmt.Sprintf("it ends at offset %d", end), start, nil
	case p.last.Offset < start:
		return "the last counted click is deleted", start, nil
	}
	doubt, err = p.compareLog(ctx, max(start, p.last.Offset-verifyRecords))
	return doubt, start, err
}

// compareLog compares the records from an offset to the last counted click with the counted ones. It returns the reason
// if they differ, else "". The last click alone is not enough: its producer may repeat it in a log that has lost its
// end, and it may get the same offset again. Then clicks that were not counted stand before it.
func (p *Partition) compareLog(ctx context.Context, from int64) (doubt string, err error) {
	var click schema.Click
	seqs := make(map[schema.Lane][]uint64)
	found, same := false, false
	for next := from; !found && err == nil; {
		before := next
		_, err = p.topic.Fetch(ctx, p.number, next, verifyWait, func(r stream.Record) error {
			valid := count.Decode(r.Value, &click) == nil
			if r.Offset >= p.last.Offset {
				found, same = true, valid && r.Offset == p.last.Offset && click.Lane == p.last.Lane && click.Seq == p.last.Seq
				return errVerified
			}
			if valid {
				seqs[click.Lane] = append(seqs[click.Lane], click.Seq)
			}
			next = r.Offset + 1
			return nil
		})
		if err == nil && next == before {
			err = fmt.Errorf("partition %d has no record at offset %d", p.number, next)
		}
	}
	switch {
	case !found:
		return "", err
	case !same:
		return "it has another record in place of the last counted click", nil
	}
	lanes := slices.Collect(maps.Keys(seqs))
	marks, err := p.store.LaneMarks(ctx, lanes) // not from memory, which may be ahead
	if err != nil {
		return "", err
	}
	for i, lane := range lanes {
		for _, seq := range seqs[lane] {
			if seq > marks[i] && seq-marks[i] <= schema.MaxLead/2 { // others are dead letters: their marks were lower then
				return "it has a click before the last counted one that was not counted", nil
			}
		}
	}
	return "", nil
}

// checkGaps verifies the log before clicks after a gap are counted: another log may be longer than the position.
func (p *Partition) checkGaps(ctx context.Context) error {
	if p.builder.Missing == 0 || p.batch.Epoch != p.batch.BaseEpoch {
		return nil
	}
	doubt, _, err := p.verifyLog(ctx)
	if err == nil && doubt != "" {
		err = fmt.Errorf("%w: %s", errLogChanged, doubt)
	}
	return err
}

// skipDeleted moves the batch to the log start offset, past records that retention deleted. A log that ends before the
// position is verified when the position is loaded again.
func (p *Partition) skipDeleted(ctx context.Context, cause error) error {
	start, end, err := p.topic.Offsets(ctx, p.number)
	switch {
	case err != nil:
		return err
	case p.batch.Next > end:
		return fmt.Errorf("%w: it ends at offset %d: %w", errLogChanged, end, cause)
	case p.batch.Next >= start:
		return cause // the leader has changed since
	}
	if !p.cfg.Late || p.batch.Base > 0 { // a late group does not count records from before it joined
		p.results.deleted += int(start - p.batch.Next)
		p.log.Error("retention deleted records before they were counted", "from", p.batch.Next, "to", start)
	}
	p.batch.Next = start
	return nil
}
