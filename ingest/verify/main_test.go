package verify_test

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"linkstream/ingest/verify"
	"linkstream/ingest/worker"
	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var visibleOnly = cmpopts.IgnoreUnexported(verify.Lane{})

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func lane(n byte) schema.Lane {
	return schema.Lane{Incarnation: schema.Incarnation{n, 1}, Number: uint32(n)}
}

// clicks returns the clicks first to last of a lane.
func clicks(l schema.Lane, first, last uint64) (values [][]byte) {
	for seq := first; seq <= last; seq++ {
		values = append(values, schema.AppendClick(nil, &schema.Click{Lane: l, Seq: seq, LinkID: 42, ClickedAt: noon}))
	}
	return values
}

// service is a topic, a store and a worker between them that runs on demand.
type service struct {
	t      *testing.T
	broker *streamtest.Broker
	client *stream.Client
	store  schema.PositionStore
	clicks *sqlite.ClickStore // of the store
	path   string
	spools []schema.SpoolReport
}

func newService(t *testing.T, partitions int) *service {
	t.Helper()
	s := &service{t: t, broker: streamtest.StartBroker(t)}
	s.client = s.broker.CreateTopics(partitions)
	s.path = filepath.Join(t.TempDir(), "clicks.db")
	store, err := sqlitetest.OpenClickStore(t.Context(), s.path)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Close(t, store) })
	s.store, s.clicks = storetest.NewPositioned(store), store
	return s
}

func (s *service) produce(partition int, values ...[]byte) {
	s.t.Helper()
	var batch stream.Batch
	batch.Reset(noon)
	for _, v := range values {
		batch.Append(nil, v)
	}
	testkit.Succeeds(s.t, func() error { return s.client.Produce(s.t.Context(), partition, &batch) })
}

// startWorker counts until stop is called.
func (s *service) startWorker() (stop func()) {
	cfg := worker.DefaultConfig()
	cfg.MaxWait, cfg.IdleWait = 20*time.Millisecond, 50*time.Millisecond
	w := worker.New(cfg, s.client, s.store, nil, slog.New(slog.DiscardHandler), metrics.NewSet())
	ctx, cancel := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			s.t.Error(err)
		}
	})
	return sync.OnceFunc(func() { cancel(); running.Wait() })
}

// count counts until the store has the given number of clicks.
func (s *service) count(total int64) {
	s.t.Helper()
	stop := s.startWorker()
	defer stop()
	testkit.Succeeds(s.t, func() error {
		counts, err := s.store.ClickCounts(s.t.Context(), 1, []int64{42})
		if err != nil {
			return err
		}
		return testkit.Mismatch("counted", counts[42], total)
	})
}

// exec changes the click store's file.
func (s *service) exec(statement string) {
	s.t.Helper()
	db, err := sql.Open("sqlite", s.path)
	testkit.Must(s.t, err)
	defer testkit.Close(s.t, db)
	_, err = db.ExecContext(s.t.Context(), statement)
	testkit.Must(s.t, err)
}

func (s *service) sources() verify.Sources {
	return verify.Sources{Topic: s.client, Clicks: s.store, Positions: s.store, Imported: s.clicks,
		Spools: func() ([]schema.SpoolReport, error) { return s.spools, nil }}
}

// look returns the report, which takes two seconds if something does not add up.
func (s *service) look() *verify.Report {
	s.t.Helper()
	report, err := verify.Run(s.t.Context(), s.sources())
	testkit.Must(s.t, err)
	return report
}

// recorded adds a spool that has recorded lanes and sent all their clicks.
func (s *service) recorded(lanes ...schema.SpoolLane) {
	s.spools = append(s.spools, schema.SpoolReport{Dir: "spool", At: noon, Lanes: lanes})
}
