package count_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"linkstream/ingest/count"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// add adds a click that is not counted yet, as the worker and the writer do.
func add(t *testing.T, b *count.Builder, l schema.Lane, seq uint64, r count.Record) {
	t.Helper()
	click := schema.Click{Lane: l, Seq: seq, LinkID: link, AccountID: 1, ClickedAt: r.Time}
	counted, known := b.Counted(&click)
	if !known {
		b.SetMark(l, 0)
		counted, _ = b.Counted(&click)
	}
	testkit.Equal(t, "counted", counted, false)
	b.Add(&click, r)
}

func knows(b *count.Builder, l schema.Lane) bool {
	_, known := b.Counted(&schema.Click{Lane: l, Seq: 1})
	return known
}

func TestBuilder(t *testing.T) {
	t.Parallel()
	t.Run("a batch has the time of its first record also in a retry", func(t *testing.T) {
		t.Parallel()
		b, first := count.NewBuilder(nil, slog.New(slog.DiscardHandler)), time.Now()
		add(t, b, lane(1), 1, count.Record{Offset: 7, Time: first})
		add(t, b, lane(1), 2, count.Record{Offset: 8, Time: first.Add(-24 * time.Hour)})
		testkit.Equal(t, "time", b.Batch.Time, first)
	})
	t.Run("missing clicks are logged with what a search for them needs", func(t *testing.T) {
		t.Parallel()
		var log bytes.Buffer
		b := count.NewBuilder(nil, slog.New(slog.NewTextHandler(&log, nil)))
		add(t, b, lane(3), 1, count.Record{Time: time.Now()})
		testkit.Equal(t, "log", log.String(), "")
		add(t, b, lane(3), 5, count.Record{Offset: 77, Time: time.Now()})
		if line := log.String(); !strings.Contains(line, "level=ERROR") || !strings.Contains(line, "lane=3 ") ||
			!strings.Contains(line, "after=1 before=5 offset=77") {
			t.Errorf("log: %s", line)
		}
	})
	t.Run("lanes are forgotten when there are too many", func(t *testing.T) {
		t.Parallel()
		b := count.NewBuilder(nil, slog.New(slog.DiscardHandler))
		for n := range uint32(100_000) {
			b.SetMark(lane(n), 0)
		}
		b.Stored()
		testkit.Equal(t, "a lane of 100,000 is known", knows(b, lane(5)), true)
		b.SetMark(lane(100_000), 0)
		b.Stored()
		testkit.Equal(t, "a lane of 100,001 is known", knows(b, lane(5)), false)
	})
	t.Run("a number further ahead than any edge comes is forged", func(t *testing.T) {
		t.Parallel()
		b := count.NewBuilder(nil, slog.New(slog.DiscardHandler))
		b.SetMark(lane(1), 10)
		for seq, want := range map[uint64]bool{11: false, 10 + schema.MaxLead: false, 11 + schema.MaxLead: true,
			schema.MaxSeq: true} {
			click := schema.Click{Lane: lane(1), Seq: seq}
			b.Counted(&click)
			testkit.Equal(t, "forged", b.Forged(&click), want)
		}
	})
	t.Run("who comes late misses no clicks before the first one of a lane", func(t *testing.T) {
		t.Parallel()
		b := count.NewBuilder(nil, slog.New(slog.DiscardHandler))
		b.Late = true
		add(t, b, lane(1), 9, count.Record{Time: time.Now()})
		testkit.Equal(t, "missing at first", b.Missing, 0)
		add(t, b, lane(1), 12, count.Record{Time: time.Now()})
		testkit.Equal(t, "missing later", b.Missing, 2)
	})
	t.Run("clicks of other accounts are neither added nor missing", func(t *testing.T) {
		t.Parallel()
		b := count.NewBuilder(nil, slog.New(slog.DiscardHandler))
		b.Only = map[int64]bool{2: true}
		clicks := new(stream.Batch)
		for seq := range uint64(6) {
			clicks.Append(nil, schema.AppendClick(nil,
				&schema.Click{Lane: lane(1), Seq: seq + 1, LinkID: link, AccountID: int64(seq % 3), ClickedAt: time.Now()}))
		}
		marks := func(context.Context, []schema.Lane) ([]uint64, error) { return []uint64{3}, nil }
		repeated, err := b.AddLane(t.Context(), clicks, marks)
		testkit.Must(t, err)
		testkit.Equal(t, "repeated", repeated, 1)
		testkit.Equal(t, "added", b.Batch.Seq, []uint64{6})
		testkit.Equal(t, "missing", b.Missing, 0)
	})
}
