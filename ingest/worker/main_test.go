package worker_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/ingest/worker"
	"linkstream/schema"
	"linkstream/schema/enrich"
	"linkstream/schema/enrich/enrichtest"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// quick is a configuration for tests that wait for each batch.
func quick() worker.Config {
	return worker.Config{MaxBatch: 1000, MaxWait: 20 * time.Millisecond, IdleWait: 100 * time.Millisecond}
}

const (
	link    = 42
	account = 7
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// lane returns a lane with its own incarnation.
func lane(n byte) schema.Lane {
	return schema.Lane{Incarnation: schema.Incarnation{n, 1}, Number: uint32(n)}
}

// encoded returns the encoded clicks first to last of a lane.
func encoded(l schema.Lane, first, last uint64) [][]byte {
	var values [][]byte
	for seq := first; seq <= last; seq++ {
		values = append(values, schema.AppendClick(nil, &schema.Click{Lane: l, Seq: seq, LinkID: link, AccountID: account,
			ClickedAt: noon, UserAgent: []byte("curl/8.5.0")}))
	}
	return values
}

func produce(t testing.TB, client *stream.Client, partition int, values ...[]byte) {
	t.Helper()
	var batch stream.Batch
	batch.Reset(noon)
	for _, v := range values {
		batch.Append(nil, v)
	}
	testkit.Must(t, client.Produce(t.Context(), partition, &batch))
}

// openStore returns a store that is closed after the test.
func openStore(t testing.TB) *storetest.Positioned {
	t.Helper()
	return storetest.NewPositioned(sqlitetest.NewClickStore(t))
}

// openCountries opens a file that maps 81.0.0.0/8 to GB.
func openCountries(t testing.TB) *enrich.Countries {
	t.Helper()
	path := filepath.Join(t.TempDir(), "countries.mmdb")
	enrichtest.WriteCountries(t, path, map[string]enrichtest.Record{"81.0.0.0/8": enrichtest.In("GB")})
	countries, err := enrich.OpenCountries(path, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	return countries
}

// running is a worker that runs in a goroutine.
type running struct {
	*worker.Worker
	t    testing.TB
	set  *metrics.Set
	log  *testkit.Buffer
	stop func() // cancels Run and waits for it
}

func start(t testing.TB, cfg worker.Config, client *stream.Client, store schema.PositionStore) *running {
	r := &running{t: t, set: metrics.NewSet(), log: new(testkit.Buffer)}
	r.Worker = worker.New(cfg, client, store, nil, r.log.Logger(), r.set)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func (r *running) awaitReady() {
	r.t.Helper()
	testkit.Succeeds(r.t, r.Ready)
}

// awaitFailing waits until Ready returns an error that contains text.
func (r *running) awaitFailing(text string) {
	r.t.Helper()
	testkit.Succeeds(r.t, func() error {
		if err := r.Ready(); err == nil || !strings.Contains(err.Error(), text) {
			return fmt.Errorf("Ready returns %v, want an error with %q", err, text)
		}
		return nil
	})
}

// metric returns the value of linkstream_ingest_name.
func (r *running) metric(name string) int {
	r.t.Helper()
	var text bytes.Buffer
	r.set.WritePrometheus(&text)
	for lines := bufio.NewScanner(&text); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "linkstream_ingest_"+name+" "); ok {
			n, err := strconv.Atoi(value)
			testkit.Must(r.t, err)
			return n
		}
	}
	r.t.Fatalf("no metric %s in\n%s", name, text.String())
	return 0
}

// wantMetrics waits until metrics have values: a batch is in the store before it is in the metrics.
func (r *running) wantMetrics(want map[string]int) {
	r.t.Helper()
	testkit.Succeeds(r.t, func() (err error) {
		for name, n := range want {
			err = errors.Join(err, testkit.Mismatch("metric "+name, r.metric(name), n))
		}
		return err
	})
}

// awaitPosition waits until the store's position of a partition is next.
func awaitPosition(t testing.TB, store schema.PositionStore, partition int, next int64) {
	t.Helper()
	testkit.Succeeds(t, func() error {
		if p, err := store.Position(t.Context(), partition); err != nil || p.Next != next {
			return fmt.Errorf("the position is %d, error %v; want %d", p.Next, err, next)
		}
		return nil
	})
}

func total(t testing.TB, store schema.ClickStore) int64 {
	t.Helper()
	counts, err := store.ClickCounts(t.Context(), 1, []int64{link})
	testkit.Must(t, err)
	return counts[link]
}

// awaitTotal waits until the link has want clicks. More are an error.
func awaitTotal(t testing.TB, store schema.ClickStore, want int64) {
	t.Helper()
	testkit.Succeeds(t, func() error {
		if got := total(t, store); got < want {
			return fmt.Errorf("%d of %d clicks are counted", got, want)
		}
		return nil
	})
	if got := total(t, store); got != want {
		t.Fatalf("%d clicks are counted, want %d", got, want)
	}
}

// faultyStore is a store with injected faults. It records its inserts.
type faultyStore struct {
	schema.PositionStore
	mu      sync.Mutex
	faults  faults
	inserts []int // sizes of the batches that were inserted
}

type faults struct {
	position error // of Position
	insert   error // of InsertClicks, without an insert
	answer   error // of InsertClicks, after the insert
}

var errDown = errors.New("the store is down")

func (s *faultyStore) set(f faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

func (s *faultyStore) get() faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

func (s *faultyStore) Position(ctx context.Context, partition int) (schema.Position, error) {
	if err := s.get().position; err != nil {
		return schema.Position{}, err
	}
	return s.PositionStore.Position(ctx, partition)
}

func (s *faultyStore) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	f := s.get()
	if f.insert != nil {
		return f.insert
	}
	if err := s.PositionStore.InsertClicks(ctx, batch); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inserts = append(s.inserts, batch.Len())
	return f.answer
}

// batchSizes returns the sizes of the batches that were inserted.
func (s *faultyStore) batchSizes() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int(nil), s.inserts...)
}
