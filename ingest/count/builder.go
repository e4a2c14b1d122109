// Package count turns records of clicks into batches for a click store, each click once. The worker of a partition and
// the writer of a machine without a broker share it:
//
//	record ─▶ decode ─▶ seq <= the lane's mark: drop ─▶ gap: note ─▶ enrich ─▶ batch ─▶ click store
//
// A lane's clicks are numbered from 1 without gaps and arrive in order, so its highest counted number, the mark,
// decides alone whether a click is a repetition. A gap is a loss, which is logged and stored with the batch. Marks and
// clicks change in one step of the store. The marks in memory are ahead of the store's while a batch is built, and must
// be forgotten if it is not counted.
package count

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"linkstream/schema"
	"linkstream/schema/enrich"
	"linkstream/schema/stream"
)

const (
	// Limits that every store can represent.
	firstYear, lastYear = 1970, 2148
	// maxMarks bounds the lanes in memory. Every start of an edge begins new ones.
	maxMarks = 100_000
)

var errOutOfRange = fmt.Errorf("clicked_at_ms is not in %d to %d, or seq is above %d", firstYear, lastYear,
	uint64(schema.MaxSeq))

// Decode decodes a record. An error means that it is no click, or that no store can represent the click.
func Decode(value []byte, c *schema.Click) error {
	err := schema.DecodeClick(value, c)
	year := c.ClickedAt.Year()
	if err == nil && (year < firstYear || year > lastYear || c.Seq > schema.MaxSeq) {
		err = errOutOfRange
	}
	return err
}

// Builder builds batches. It belongs to one goroutine.
type Builder struct {
	Batch   schema.ClickBatch
	Missing int // clicks that are missing between the lanes' marks and the batch
	// Late says that a lane may be met in its middle: clicks before its first one are not missing.
	Late bool
	// Only are the accounts whose clicks AddLane adds; nil: all. Clicks of others are neither counted nor missing.
	Only map[int64]bool

	enricher *enrich.Enricher
	log      *slog.Logger
	marks    map[schema.Lane]uint64 // of lanes that were met; lane's own is in mark
	inLane   bool                   // lane and mark are set
	lane     schema.Lane            // of the last click; clicks of a lane arrive in runs
	mark     uint64
}

// NewBuilder returns a builder. countries may be nil.
func NewBuilder(countries *enrich.Countries, log *slog.Logger) *Builder {
	return &Builder{enricher: enrich.New(countries), log: log, marks: make(map[schema.Lane]uint64)}
}

// Counted reports whether a click is at or below its lane's mark, and whether the mark is loaded: otherwise the caller
// loads it from the store for SetMark.
func (b *Builder) Counted(c *schema.Click) (counted, known bool) {
	if !b.inLane || c.Lane != b.lane {
		mark, known := b.marks[c.Lane]
		if !known {
			return false, false
		}
		if b.inLane {
			b.marks[b.lane] = b.mark
		}
		b.inLane, b.lane, b.mark = true, c.Lane, mark
	}
	return c.Seq <= b.mark, true
}

// Forged reports whether a click's number is too high for any edge to have reached it. Call it after Counted has
// returned false with a loaded mark.
func (b *Builder) Forged(c *schema.Click) bool { return c.Seq-b.mark > schema.MaxLead }

// SetMark sets the mark of a lane whose mark is not loaded.
func (b *Builder) SetMark(lane schema.Lane, mark uint64) { b.marks[lane] = mark }

// Forget forgets all marks: they may differ from the store's.
func (b *Builder) Forget() { b.marks, b.inLane = make(map[schema.Lane]uint64), false }

// Stored says that the store has the batch. It bounds the marks in memory.
func (b *Builder) Stored() {
	if len(b.marks) > maxMarks {
		b.Forget()
	}
}

// Record is where a click was read: Partition and Offset are 0 where there is no topic.
type Record struct {
	Partition int
	Offset    int64
	Time      time.Time
}

// Add adds a click to the batch. Counted has just returned false for it, with a known mark.
func (b *Builder) Add(c *schema.Click, r Record) {
	to := &b.Batch
	if c.Seq > b.mark+1 && b.Only == nil && !(b.Late && b.mark == 0) {
		b.Missing += int(c.Seq - b.mark - 1)
		to.Gaps = append(to.Gaps, schema.Gap{Lane: c.Lane, SeqRange: schema.SeqRange{First: b.mark + 1, Last: c.Seq - 1},
			Partition: r.Partition, Offset: r.Offset, Found: time.Now()})
		b.log.Error("clicks of a lane are missing", "lane", c.Lane.Number, "incarnation", c.Lane.Incarnation,
			"after", b.mark, "before", c.Seq, "offset", r.Offset)
	}
	b.mark = c.Seq
	source := b.enricher.Enrich(c)
	if to.Len() == 0 {
		to.Time = r.Time
	}
	to.Offset = append(to.Offset, r.Offset)
	to.Lane, to.Seq = append(to.Lane, c.Lane), append(to.Seq, c.Seq)
	to.LinkID, to.AccountID = append(to.LinkID, c.LinkID), append(to.AccountID, c.AccountID)
	to.ClickedAt = append(to.ClickedAt, c.ClickedAt)
	source.AppendTo(to)
	visitor := c.Visitor
	if source.Device == schema.Bot {
		visitor = 0
	}
	to.Visitor = append(to.Visitor, visitor)
}

// AddLane adds the clicks of a lane that are not counted, and returns how many are. marks reads marks of lanes. After
// an error, clicks before the failure are in the batch, as they would be if the lane had sent them alone.
// stream.ErrRefused if a record is not a click.
func (b *Builder) AddLane(ctx context.Context, lane *stream.Batch,
	marks func(context.Context, []schema.Lane) ([]uint64, error)) (repeated int, err error) {
	var click schema.Click
	for i := range lane.Len() {
		if err := Decode(lane.Value(i), &click); err != nil {
			return repeated, fmt.Errorf("record %d of %d is not a click: %w: %w", i+1, lane.Len(), stream.ErrRefused, err)
		}
		if b.Only != nil && !b.Only[click.AccountID] {
			continue
		}
		counted, known := b.Counted(&click)
		if !known {
			mark, err := marks(ctx, []schema.Lane{click.Lane})
			if err != nil {
				return repeated, err
			}
			b.SetMark(click.Lane, mark[0])
			counted, _ = b.Counted(&click)
		}
		if counted {
			repeated++
		} else {
			b.Add(&click, Record{Time: lane.Time})
		}
	}
	return repeated, nil
}
