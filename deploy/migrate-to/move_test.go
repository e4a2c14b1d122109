//go:build engines

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"go.uber.org/goleak"

	"linkstream/deploy/standalone/embedded"
	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/edge/spool"
	"linkstream/ingest/count"
	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/clickhouse/clickhousetest"
	"linkstream/schema/filelock"
	"linkstream/schema/linkstore/postgres"
	linksqlite "linkstream/schema/linkstore/sqlite"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

var engines enginetest.Engines

func TestMain(m *testing.M) { goleak.VerifyTestMain(engines.Of(m)) }

const (
	owner    = "owner@example.com"
	hash     = "abc"
	counted  = 10 // clicks that the service has counted, and not released from its spool
	recorded = 30 // clicks in its spool
)

// topic is a topic that can refuse one click.
type topic struct {
	refuse uint64 // seq of a click that it never accepts

	mu   sync.Mutex
	seqs []uint64
	sent stream.Batch // what it has accepted
}

func (*topic) Partitions(context.Context) (int, error) { return 3, nil }

func (o *topic) Produce(_ context.Context, _ int, batch *stream.Batch) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var seqs []uint64
	for i := range batch.Len() {
		var c schema.Click
		if err := schema.DecodeClick(batch.Value(i), &c); err != nil || c.Seq == o.refuse {
			return errors.Join(stream.ErrRefused, err)
		}
		seqs = append(seqs, c.Seq)
		o.sent.Append(nil, batch.Value(i))
	}
	o.seqs = append(o.seqs, seqs...)
	return nil
}

// want requires that the topic has the first n clicks, each once and in order.
func (o *topic) want(t *testing.T, n uint64) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	var want []uint64
	for seq := range n {
		want = append(want, seq+1)
	}
	testkit.Equal(t, "sent clicks", o.seqs, want)
}

// env is the data of a service, which visitors of one link have used, and empty engines.
type env struct {
	move
	topic    topic
	out      testkit.Buffer
	imported schema.History
	linkID   int64
	lane     schema.Lane // of all clicks
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	e := &env{}
	links, err := postgres.Open(t.Context(), postgres.Config{DSN: engines.Postgres(t)})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Close(t, links) })
	clicks, err := clickhousetest.Open(t.Context(), clickhouse.Config{DSN: engines.ClickHouse(t)})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Close(t, clicks) })
	e.move = move{from: embedded.Dir(t.TempDir()), links: links, clicks: clicks, topic: &e.topic, out: &e.out,
		log: slog.New(slog.DiscardHandler)}
	e.fill(t)
	return e
}

// fill creates the data of the service. It was killed after it had counted some clicks, and before it released them.
func (e *env) fill(t *testing.T) {
	t.Helper()
	links, err := sqlitetest.Open(t.Context(), e.from.Links())
	testkit.Must(t, err)
	defer testkit.Close(t, links)
	now := time.Now()
	account := schema.Account{Email: owner, Profile: schema.Profile{TimeZone: "Europe/Vienna"}, CreatedAt: now}
	testkit.Must(t, links.CreateAccount(t.Context(), &account))
	newWebhook(t, links, account, now)
	link := schema.Link{AccountID: account.ID, Hash: hash, URL: "https://example.com/", Active: true, CreatedAt: now}
	testkit.Must(t, links.CreateLink(t.Context(), &link))

	clicks, err := sqlitetest.OpenClickStore(t.Context(), e.from.Clicks())
	testkit.Must(t, err)
	defer testkit.Close(t, clicks)
	cfg := spool.DefaultConfig()
	cfg.Dir, cfg.Lanes = e.from.Spool(), 1
	s, err := spool.Open(cfg, e.log)
	testkit.Must(t, err)
	defer testkit.Close(t, s)
	e.linkID, e.lane = link.ID, s.Lanes()[0].ID()
	record := func(n int) {
		for range n {
			s.Append(0, &schema.Click{LinkID: link.ID, AccountID: account.ID, ClickedAt: time.Now()})
		}
	}
	e.imported = storetest.HistoryOf(account.ID, link.ID+1, "bitly", now.AddDate(0, 0, -2), 30, 0, 7)
	testkit.Must(t, clicks.SetHistories(t.Context(), e.imported))
	record(counted)
	testkit.Must(t, e.count(t, clicks, links, s.Lanes()[0]))
	record(recorded - counted)
	e.fillLinks(t, links, account, now)
}

// count makes a store count the clicks of a lane that have not been read, and webhooks hear of them.
func (e *env) count(t *testing.T, clicks *sqlite.ClickStore, webhooks schema.ClickHookStore, lane *spool.Lane) error {
	t.Helper()
	var batch stream.Batch
	batch.Reset(time.Now())
	lane.Read(&batch, 1<<20)
	return errors.Join(count.NewWriter(clicks, webhooks, nil, e.log, metrics.NewSet()).Count(t.Context(), &batch)...)
}

// wantNotCounting requires that the old service cannot count the clicks in its spool.
func (e *env) wantNotCounting(t *testing.T) {
	t.Helper()
	old, err := sqlite.OpenClickStore(t.Context(), e.from.Clicks())
	testkit.Must(t, err)
	defer testkit.Close(t, old)
	cfg := spool.DefaultConfig()
	cfg.Dir = e.from.Spool()
	s, err := spool.OpenLeft(cfg, e.log)
	testkit.Must(t, err)
	defer testkit.Close(t, s)
	if err := e.count(t, old, nil, s.Lanes()[0]); !errors.Is(err, schema.ErrMoved) {
		t.Errorf("a click in the old data: %v", err)
	}
	if err := old.SetHistories(t.Context(), e.imported); !errors.Is(err, schema.ErrMoved) {
		t.Errorf("imported clicks in the old data: %v", err)
	}
}

// start begins a move, which stop interrupts and whose outcome ended has.
func (e *env) start(t *testing.T) (stop func(), ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	outcome := make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() { outcome <- e.run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return cancel, outcome
}

// hold takes a lock as another program would.
func hold(t *testing.T, path string) *filelock.Lock {
	t.Helper()
	lock, err := filelock.TryAcquire(path)
	testkit.Must(t, err)
	return lock
}

func wantHeld(t *testing.T, path string, held bool) {
	t.Helper()
	lock, err := filelock.TryAcquire(path)
	if errors.Is(err, filelock.ErrHeld) != held {
		t.Errorf("lock %s: error %v, want held %t", filepath.Base(path), err, held)
	}
	if err == nil {
		testkit.Must(t, lock.Release())
	}
}

// wantCounted requires the number of clicks that ClickHouse has, beside the imported ones if it has any.
func (e *env) wantCounted(t *testing.T, want int64) {
	t.Helper()
	counts, err := e.clicks.ClickCounts(t.Context(), 1, []int64{e.linkID})
	testkit.Must(t, err)
	testkit.Equal(t, "counted clicks", counts[e.linkID], want)
	if want > 0 {
		imported, err := e.clicks.History(t.Context(), e.imported.LinkID, e.imported.Source)
		testkit.Must(t, err)
		testkit.Equal(t, "imported clicks", imported, e.imported)
	}
}

// wantChangeable requires that the old service can change links, or not.
func (e *env) wantChangeable(t *testing.T, yes bool) {
	t.Helper()
	old, err := linksqlite.Open(t.Context(), e.from.Links())
	testkit.Must(t, err)
	defer testkit.Close(t, old)
	err = old.CreateAccount(t.Context(), &schema.Account{Email: "other@example.com", CreatedAt: time.Now()})
	if yes && err != nil || !yes && !errors.Is(err, schema.ErrMoved) {
		t.Errorf("a change in the old data: %v", err)
	}
}

func TestMove(t *testing.T) {
	t.Parallel()
	const copied, moved, again = "then stop the old one", "everything has moved", "start it again"
	t.Run("sends the spool when the service has stopped, and keeps backups and the service away", func(t *testing.T) {
		e := newEnv(t)
		service := hold(t, e.from.Lock())
		_, ended := e.start(t)
		testkit.Eventually(t, "the links are copied", func() bool { return e.out.Contains(copied) })
		e.wantCounted(t, counted)
		e.wantNotCounting(t)
		e.wantChangeable(t, false)
		_, err := schema.FindLink(t.Context(), e.links, 0, hash)
		testkit.Must(t, err)
		wantHeld(t, e.from.BackupLock(), true)
		e.topic.want(t, 0)
		testkit.Must(t, service.Release())
		testkit.Must(t, <-ended)
		e.topic.want(t, recorded)
		wantHeld(t, e.from.BackupLock(), false)
		wantHeld(t, e.from.Lock(), false)
		for _, said := range []string{"10 counted clicks are in ClickHouse", "30 clicks shipped", moved} {
			if !e.out.Contains(said) {
				t.Errorf("the output does not have %q:\n%s", said, e.out.String())
			}
		}
	})
	t.Run("holds the service's lock while it sends", func(t *testing.T) {
		e := newEnv(t)
		e.move.topic = lookingTopic{&e.topic, func() { wantHeld(t, e.from.Lock(), true) }}
		testkit.Must(t, e.run(t.Context()))
		e.topic.want(t, recorded)
	})
	t.Run("that is stopped while the service runs is not done, and goes on", func(t *testing.T) {
		e := newEnv(t)
		service := hold(t, e.from.Lock())
		stop, ended := e.start(t)
		testkit.Eventually(t, "the links are copied", func() bool { return e.out.Contains(copied) })
		stop()
		testkit.WantError(t, <-ended, schema.CodeInternal, again)
		e.topic.want(t, 0)
		testkit.Must(t, service.Release())
		testkit.Must(t, e.run(t.Context()))
		e.wantCounted(t, counted)
		e.topic.want(t, recorded)
		testkit.Must(t, e.run(t.Context())) // has nothing to do
		e.wantCounted(t, counted)
		e.topic.want(t, recorded)
	})
	t.Run("is not done while Kafka does not have every click", func(t *testing.T) {
		e := newEnv(t)
		e.topic.refuse = recorded
		testkit.WantError(t, e.run(t.Context()), schema.CodeInternal, again)
		e.topic.want(t, recorded-1)
		if e.out.Contains(moved) {
			t.Errorf("output:\n%s", e.out.String())
		}
		wantHeld(t, e.from.Lock(), false)
	})
	t.Run("of a service without a spool", func(t *testing.T) {
		e := newEnv(t)
		testkit.Must(t, os.RemoveAll(e.from.Spool()))
		testkit.Must(t, e.run(t.Context()))
		e.wantCounted(t, counted)
		e.topic.want(t, 0)
	})
	t.Run("does not end the changes of links before the clicks are there", func(t *testing.T) {
		e := newEnv(t)
		others, click := count.NewBuilder(nil, e.log), schema.Click{Seq: 1, LinkID: 7, AccountID: 7, ClickedAt: time.Now()}
		others.SetMark(click.Lane, 0)
		others.Counted(&click)
		others.Add(&click, count.Record{Time: time.Now()})
		others.Batch.Next = 1
		testkit.Must(t, e.clicks.InsertClicks(t.Context(), &others.Batch))
		testkit.WantCode(t, e.run(t.Context()), schema.CodeConflict)
		e.wantChangeable(t, true)
		e.topic.want(t, 0)
	})
	t.Run("does not send the spool before the links are there", func(t *testing.T) {
		e := newEnv(t)
		testkit.Must(t,
			e.links.CreateAccount(t.Context(), &schema.Account{Email: "other@example.com", CreatedAt: time.Now()}))
		testkit.WantCode(t, e.run(t.Context()), schema.CodeConflict)
		e.topic.want(t, 0)
	})
	t.Run("does not begin during a backup", func(t *testing.T) {
		e := newEnv(t)
		backup := hold(t, e.from.BackupLock())
		testkit.WantError(t, e.run(t.Context()), schema.CodeInternal, "a backup")
		e.wantCounted(t, 0)
		e.wantChangeable(t, true)
		testkit.Must(t, backup.Release())
		testkit.Must(t, e.run(t.Context()))
	})
	t.Run("refuses a directory that is not a service's, and creates nothing in it", func(t *testing.T) {
		for _, missing := range []func(embedded.Dir) string{embedded.Dir.Links, embedded.Dir.Clicks} {
			dir := embedded.Dir(t.TempDir())
			for _, path := range []string{dir.Links(), dir.Clicks()} {
				if path != missing(dir) {
					testkit.Must(t, os.WriteFile(path, nil, 0o600))
				}
			}
			m := move{from: dir, out: new(testkit.Buffer)}
			testkit.WantError(t, m.run(t.Context()), schema.CodeInternal, "is not the data directory of a service")
			entries, err := os.ReadDir(string(dir))
			testkit.Must(t, err)
			testkit.Equal(t, "files", len(entries), 1)
		}
	})
}

// lookingTopic calls look at each attempt to send.
type lookingTopic struct {
	*topic
	look func()
}

func (o lookingTopic) Produce(ctx context.Context, partition int, batch *stream.Batch) error {
	o.look()
	return o.topic.Produce(ctx, partition, batch)
}
