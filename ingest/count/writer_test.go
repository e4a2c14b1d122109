package count_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"go.uber.org/goleak"

	"linkstream/ingest/count"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitefile"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const link = 42

func lane(n uint32) schema.Lane { return schema.Lane{Incarnation: schema.Incarnation{1}, Number: n} }

// batch returns the clicks first to last of a lane.
func batch(l schema.Lane, first, last uint64) *stream.Batch {
	b := new(stream.Batch)
	b.Reset(time.Now())
	for seq := first; seq <= last; seq++ {
		b.Append(nil, schema.AppendClick(nil, &schema.Click{Lane: l, Seq: seq, LinkID: link, AccountID: 1,
			ClickedAt: time.Now()}))
	}
	return b
}

func openStore(t *testing.T, path string) *sqlite.ClickStore {
	t.Helper()
	store, err := sqlitetest.OpenClickStore(t.Context(), path)
	testkit.Must(t, err)
	return store
}

func newWriter(store count.LaneStore) *count.Writer {
	return count.NewWriter(store, nil, nil, slog.New(slog.DiscardHandler), metrics.NewSet())
}

func wantTotal(t *testing.T, store *sqlite.ClickStore, want int64) {
	t.Helper()
	counts, err := store.ClickCounts(t.Context(), 1, []int64{link})
	testkit.Must(t, err)
	testkit.Equal(t, "counted clicks", counts[link], want)
}

func TestWriter(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) (*sqlite.ClickStore, *count.Writer) {
		store := openStore(t, filepath.Join(t.TempDir(), "clicks.db"))
		t.Cleanup(func() { testkit.Close(t, store) })
		return store, newWriter(store)
	}
	t.Run("counts each click once, also if several writers get it often", func(t *testing.T) {
		t.Parallel()
		store, w := open(t)
		testkit.Must(t, w.Produce(t.Context(), 0, batch(lane(1), 1, 10)))
		testkit.Must(t, w.Produce(t.Context(), 0, batch(lane(1), 1, 10)))
		testkit.Must(t, w.Produce(t.Context(), 0, batch(lane(1), 6, 15)))
		testkit.Must(t, newWriter(store).Produce(t.Context(), 0, batch(lane(1), 1, 20)))
		testkit.Must(t, w.Produce(t.Context(), 0, batch(lane(2), 1, 5)))
		wantTotal(t, store, 25)
	})
	t.Run("counts only new clicks after another writer has counted", func(t *testing.T) {
		t.Parallel()
		store, w := open(t)
		testkit.Must(t, w.Produce(t.Context(), 0, batch(lane(1), 1, 10)))
		testkit.Must(t, newWriter(store).Produce(t.Context(), 0, batch(lane(1), 11, 15)))
		testkit.WantCode(t, w.Produce(t.Context(), 0, batch(lane(1), 11, 20)), schema.CodeConflict)
		testkit.Must(t, w.Produce(t.Context(), 0, batch(lane(1), 11, 20)))
		wantTotal(t, store, 20)
	})
	t.Run("counts lanes together", func(t *testing.T) {
		t.Parallel()
		store, w := open(t)
		var lanes sync.WaitGroup
		for n := range uint32(100) {
			lanes.Go(func() { testkit.Must(t, w.Produce(t.Context(), 0, batch(lane(n), 1, 3))) })
		}
		lanes.Wait()
		wantTotal(t, store, 300)
	})
	t.Run("refuses bytes that are no click and counts the other lanes", func(t *testing.T) {
		t.Parallel()
		store, w := open(t)
		bad := batch(lane(1), 1, 2)
		bad.Append(nil, []byte("not a click"))
		errs := w.Count(t.Context(), bad, batch(lane(2), 1, 4))
		if !errors.Is(errs[0], stream.ErrRefused) || errs[1] != nil {
			t.Errorf("outcomes %v", errs)
		}
		testkit.Must(t, w.Produce(t.Context(), 0, batch(lane(1), 1, 2))) // in parts, as a shipper does
		wantTotal(t, store, 6)
	})
}

// A store that fails has counted or not. The writer does not trust its own memory afterwards.
func TestWriterAfterFailures(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "clicks.db")
	store := openStore(t, path)
	w := newWriter(store)
	testkit.Must(t, w.Produce(t.Context(), 0, batch(lane(1), 1, 3)))
	testkit.Must(t, w.Ready())
	_, err := sqlitefile.Freeze(t.Context(), path, schema.MoveID{})
	testkit.Must(t, err)
	for range 2 {
		if err := w.Produce(t.Context(), 0, batch(lane(1), 4, 6)); !errors.Is(err, schema.ErrMoved) ||
			!errors.Is(w.Ready(), schema.ErrMoved) {
			t.Errorf("error %v, ready %v", err, w.Ready())
		}
	}
	wantTotal(t, store, 3)
	testkit.Close(t, store)
}

// instant is a click store that takes no time.
type instant struct{}

func (instant) LaneMarks(_ context.Context, lanes []schema.Lane) ([]uint64, error) {
	return make([]uint64, len(lanes)), nil
}
func (instant) InsertClicks(context.Context, *schema.ClickBatch) error { return nil }

func TestWriterPauses(t *testing.T) {
	t.Parallel()
	full := new(stream.Batch)
	full.Reset(time.Now())
	for seq := uint64(1); full.Size() < count.BatchBytes; seq++ {
		full.Append(nil, schema.AppendClick(nil, &schema.Click{Lane: lane(1), Seq: seq, LinkID: link, AccountID: 1,
			ClickedAt: time.Now(), UserAgent: make([]byte, 1<<10)}))
	}
	tests := []struct {
		name  string
		batch *stream.Batch
		// that send a click at the same time as the batch; without a pause, each may have a transaction of its own
		lanes uint32
		want  time.Duration // until their clicks are counted
	}{
		{"few clicks are counted at once", batch(lane(1), 1, 20), 3, 101 * time.Millisecond},
		{"more clicks wait longer", batch(lane(1), 1, 5_000), 3, 350 * time.Millisecond},
		{"no click waits long", batch(lane(1), 1, 50_000), 3, 700 * time.Millisecond},
		{"a backlog is counted without a pause", full, 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, began := newWriter(instant{}), time.Now()
				testkit.Must(t, w.Produce(t.Context(), 0, tt.batch))
				testkit.Equal(t, "first transaction", time.Since(began), 0)
				w.Await(t.Context())
				testkit.Equal(t, "next batch is read", time.Since(began), max(0, tt.want-10*time.Millisecond))
				var lanes sync.WaitGroup
				for n := range tt.lanes {
					lanes.Go(func() { testkit.Must(t, w.Produce(t.Context(), 0, batch(lane(2+n), 1, 1))) })
				}
				lanes.Wait()
				testkit.Equal(t, "clicks of other lanes are counted", time.Since(began), tt.want)
			})
		})
	}
}

func TestWriterTellsWhatIsMissingAndRepeated(t *testing.T) {
	t.Parallel()
	store, set := openStore(t, filepath.Join(t.TempDir(), "clicks.db")), metrics.NewSet()
	t.Cleanup(func() { testkit.Close(t, store) })
	w := count.NewWriter(store, nil, nil, slog.New(slog.DiscardHandler), set)
	testkit.Must(t, w.Produce(t.Context(), 0, batch(lane(1), 1, 10)))
	testkit.Must(t, w.Produce(t.Context(), 0, batch(lane(1), 14, 20)))
	testkit.Must(t, w.Produce(t.Context(), 0, batch(lane(1), 14, 25)))
	wantTotal(t, store, 22)
	testkit.Equal(t, "repeated", set.GetOrCreateCounter("linkstream_ingest_clicks_repeated_total").Get(), 7)
	testkit.Equal(t, "missing", set.GetOrCreateCounter("linkstream_ingest_clicks_missing_total").Get(), 3)
	gaps, err := store.LaneGaps(t.Context(), lane(1))
	testkit.Must(t, err)
	testkit.Equal(t, "gaps", len(gaps), 1)
	testkit.Equal(t, "gap", gaps[0].SeqRange, schema.SeqRange{First: 11, Last: 13})
}

func TestDecodeRefusesWhatNoStoreHas(t *testing.T) {
	at := func(year int) time.Time { return time.Date(year, 7, 1, 0, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		seq   uint64
		year  int
		valid bool
	}{
		{1, 1970, true}, {1, 1969, false}, {1, 2148, true}, {1, 2149, false}, {schema.MaxSeq, 2026, true},
		{schema.MaxSeq + 1, 2026, false},
	} {
		value := schema.AppendClick(nil, &schema.Click{Lane: lane(1), Seq: c.seq, LinkID: link, ClickedAt: at(c.year)})
		if err := count.Decode(value, new(schema.Click)); (err == nil) != c.valid {
			t.Errorf("seq %d of %d: error %v", c.seq, c.year, err)
		}
	}
}

// failingQueue fails to queue clicks for webhooks as often as fail says.
type failingQueue struct {
	*linkstore.Store
	fail int
}

func (h *failingQueue) QueueClicks(ctx context.Context, batch *schema.ClickBatch) error {
	if h.fail > 0 {
		h.fail--
		return errors.New("cannot tell")
	}
	return h.Store.QueueClicks(ctx, batch)
}

func TestWriterTellsWebhooks(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	clicks := openStore(t, filepath.Join(folder, "clicks.db"))
	t.Cleanup(func() { testkit.Close(t, clicks) })
	links, err := sqlitetest.Open(t.Context(), filepath.Join(folder, "links.db"))
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Close(t, links) })
	owner := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(t, links.CreateAccount(t.Context(), &owner)) // number 1, as in the clicks
	queue := &failingQueue{links, 2}
	start := func() *count.Writer {
		return count.NewWriter(clicks, queue, nil, slog.New(slog.DiscardHandler), metrics.NewSet())
	}
	w := start()
	// no webhook wants clicks, so nothing fails
	testkit.Must(t, errors.Join(w.Count(t.Context(), batch(lane(1), 1, 4))...))

	hook := schema.Webhook{AccountID: owner.ID, URL: "https://example.org/", Events: []string{schema.EventLinkClicked},
		Active: true,
		Secret: "whsec_bmV3", CreatedAt: time.Now(), UpdatedAt: time.Now()}
	testkit.Must(t, links.CreateWebhook(t.Context(), &hook))
	told := func() (clicks int) {
		deliveries, err := links.WaitingDeliveries(t.Context(), hook.AccountID, hook.ID, 100)
		testkit.Must(t, err)
		for _, d := range deliveries {
			clicks += strings.Count(d.Data, "\n")
		}
		return clicks
	}
	for range 2 { // the first process is killed between the transactions
		for _, err := range w.Count(t.Context(), batch(lane(1), 5, 9), batch(lane(2), 1, 2)) {
			if err == nil {
				t.Error("a batch is released that nobody was told of")
			}
		}
		wantTotal(t, clicks, 11)
		testkit.Equal(t, "told after a failure", told(), 0)
		if w.Ready() == nil {
			t.Error("ready after a failure")
		}
		if queue.fail > 0 {
			w = start()
		}
	}
	for range 2 {
		testkit.Must(t, errors.Join(w.Count(t.Context(), batch(lane(1), 5, 9), batch(lane(2), 1, 2))...))
	}
	testkit.Must(t, w.Ready())
	testkit.Must(t, errors.Join(w.Count(t.Context(), batch(lane(2), 2, 3))...))
	wantTotal(t, clicks, 12)
	testkit.Equal(t, "told", told(), 8)
}
