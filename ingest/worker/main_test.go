package worker_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"go.uber.org/goleak"

	"linkstream/ingest/enrich"
	"linkstream/ingest/enrich/enrichtest"
	"linkstream/ingest/worker"
	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
)

func TestMain(m *testing.M) {
	if brokers := os.Getenv(envBrokers); brokers != "" {
		os.Exit(countUntilKilled(brokers, os.Getenv(envStore)))
	}
	goleak.VerifyTestMain(m)
}

// quick is a configuration for tests that wait for each batch.
func quick() worker.Config {
	return worker.Config{MaxBatch: 1000, MaxWait: 20 * time.Millisecond, IdleWait: 100 * time.Millisecond}
}

const (
	link    = 42
	account = 7
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// lane returns a lane of an incarnation of its own.
func lane(n byte) schema.Lane {
	return schema.Lane{Incarnation: schema.Incarnation{n, 1}, Number: uint32(n)}
}

// encoded returns the clicks first to last of a lane.
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
	if err := client.Produce(t.Context(), partition, &batch); err != nil {
		t.Fatal(err)
	}
}

func openStore(t testing.TB) *sqlite.Clicks {
	t.Helper()
	store, err := sqlite.OpenClicks(t.Context(), filepath.Join(t.TempDir(), "clicks.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// openCountries opens a file that knows the country of 81.0.0.0/8.
func openCountries(t testing.TB) *enrich.Countries {
	t.Helper()
	path := filepath.Join(t.TempDir(), "countries.mmdb")
	enrichtest.WriteCountries(t, path, map[string]enrichtest.Record{"81.0.0.0/8": enrichtest.In("GB")})
	countries, err := enrich.OpenCountries(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return countries
}

// running is a worker in a goroutine.
type running struct {
	*worker.Worker
	t    testing.TB
	set  *metrics.Set
	log  *logBuffer
	stop func() // and wait until it has
}

func start(t testing.TB, cfg worker.Config, client *stream.Client, store schema.ClickStore) *running {
	return startWith(t, nil, cfg, client, store)
}

func startWith(t testing.TB, countries *enrich.Countries, cfg worker.Config, client *stream.Client,
	store schema.ClickStore) *running {
	r := &running{t: t, set: metrics.NewSet(), log: new(logBuffer)}
	r.Worker = worker.New(cfg, client, store, countries, slog.New(slog.NewTextHandler(r.log, nil)), r.set)
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
	streamtest.Succeeds(r.t, r.Ready)
}

// awaitFailing waits until Ready says what.
func (r *running) awaitFailing(what string) {
	r.t.Helper()
	streamtest.Eventually(r.t, func() string {
		if err := r.Ready(); err == nil || !strings.Contains(err.Error(), what) {
			return "Ready says " + errString(err) + ", not " + what
		}
		return ""
	})
}

func errString(err error) string {
	if err == nil {
		return "nothing"
	}
	return err.Error()
}

// metric returns the value of linkstream_ingest_name.
func (r *running) metric(name string) int {
	r.t.Helper()
	var text bytes.Buffer
	r.set.WritePrometheus(&text)
	for lines := bufio.NewScanner(&text); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "linkstream_ingest_"+name+" "); ok {
			n, err := strconv.Atoi(value)
			if err != nil {
				r.t.Fatal(err)
			}
			return n
		}
	}
	r.t.Fatalf("no metric %s in\n%s", name, text.String())
	return 0
}

func (r *running) wantMetrics(want map[string]int) {
	r.t.Helper()
	for name, n := range want {
		if got := r.metric(name); got != n {
			r.t.Errorf("metric %s is %d, want %d", name, got, n)
		}
	}
}

// awaitPosition waits until a partition has been counted up to next.
func awaitPosition(t testing.TB, store schema.ClickStore, partition int, next int64) {
	t.Helper()
	streamtest.Eventually(t, func() string {
		if p, err := store.Position(t.Context(), partition); err != nil || p.Next != next {
			return "partition is counted up to " + strconv.FormatInt(p.Next, 10) + ", error " + errString(err)
		}
		return ""
	})
}

func total(t testing.TB, store schema.ClickStore) int64 {
	t.Helper()
	counts, err := store.ClickCounts(t.Context(), []int64{link})
	if err != nil {
		t.Fatal(err)
	}
	return counts[link]
}

// awaitTotal waits until the link has want clicks, and checks that it does not get more of them.
func awaitTotal(t testing.TB, store schema.ClickStore, want int64) {
	t.Helper()
	streamtest.Eventually(t, func() string {
		if got := total(t, store); got < want {
			return strconv.FormatInt(got, 10) + " clicks are counted"
		}
		return ""
	})
	if got := total(t, store); got != want {
		t.Fatalf("%d clicks are counted, want %d", got, want)
	}
}

// logBuffer holds what is logged.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) contains(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(b.text.String(), text)
}

// faultyStore is a store that fails as it is told, and tells of its inserts.
type faultyStore struct {
	schema.ClickStore
	mu      sync.Mutex
	faults  faults
	inserts []int // clicks of each batch that was counted
}

type faults struct {
	position error // what Position returns
	insert   error // what InsertClicks returns without doing anything
	answer   error // what InsertClicks returns after it has counted
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
	return s.ClickStore.Position(ctx, partition)
}

func (s *faultyStore) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	f := s.get()
	if f.insert != nil {
		return f.insert
	}
	if err := s.ClickStore.InsertClicks(ctx, batch); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inserts = append(s.inserts, batch.Len())
	return f.answer
}

// counted returns how many clicks each batch had that was inserted.
func (s *faultyStore) counted() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int(nil), s.inserts...)
}
