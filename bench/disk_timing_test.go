package main_test

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"linkstream/bench/workload"
	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/postgres"
	"linkstream/schema/sqlite"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

const (
	diskClicks = 300_000 // of 30 days
	diskLinks  = 10_000
)

// BenchmarkDisk reports how many bytes a click and a link take in each place, for the table in deploy/README.md. It is not about
// time: use -benchtime 1x.
func BenchmarkDisk(b *testing.B) {
	b.Run("click in the spool", func(b *testing.B) {
		cfg := spool.DefaultConfig()
		cfg.Dir, cfg.Lanes = b.TempDir(), 1
		s, err := spool.Open(cfg, slog.New(slog.DiscardHandler))
		testkit.Must(b, err)
		const clicks = 20_000
		for _, click := range workload.SampleClicks(clicks) {
			if !s.Append(0, &click) {
				b.Fatal("the spool is full")
			}
		}
		testkit.Must(b, s.Close())
		to := b.TempDir() // a copy has only the part of a segment that is used
		testkit.Must(b, spool.Copy(cfg.Dir, to))
		reportBytes(b, sizeOf(b, to), clicks, "click")
	})
	for _, size := range []int{10, 1000} {
		b.Run(fmt.Sprintf("click in the topic, %d per batch", size), func(b *testing.B) {
			broker := streamtest.StartBroker(b)
			client := broker.CreateTopics(1)
			before, sent := sizeOf(b, broker.Dir), 0
			batch, lane := new(stream.Batch), schema.Lane{Incarnation: schema.Incarnation{1, 2, 3, 4, 5, 6, 7, 8, 9}}
			clicks := workload.SampleClicks(20_000)
			for begin := 0; begin < len(clicks); begin += size {
				batch.Reset(time.Now())
				for _, click := range clicks[begin : begin+size] {
					sent++
					batch.Append(schema.AppendClickIdentity(nil, lane, uint64(sent)), schema.AppendClickBody(nil, &click))
				}
				testkit.Must(b, client.Produce(b.Context(), 0, batch))
			}
			reportBytes(b, sizeOf(b, broker.Dir)-before, sent, "click")
		})
	}
	b.Run("click in SQLite", func(b *testing.B) {
		dir := b.TempDir()
		store, err := sqlite.OpenClickStore(b.Context(), filepath.Join(dir, "clicks.db"))
		testkit.Must(b, err)
		testkit.Must(b, workload.NewHistory(workload.NewLinks(diskLinks), 0).Store(b.Context(), store, diskClicks))
		testkit.Must(b, store.Close()) // moves the write-ahead log into the file
		reportBytes(b, sizeOf(b, dir), diskClicks, "click")
	})
	b.Run("click in ClickHouse", func(b *testing.B) {
		dsn := engines.ClickHouse(b)
		store, err := clickhouse.OpenClickStore(b.Context(), clickhouse.Config{DSN: dsn})
		testkit.Must(b, err)
		testkit.Must(b, workload.NewHistory(workload.NewLinks(diskLinks), 0).Store(b.Context(), store, diskClicks))
		testkit.Must(b, store.Close())
		options, err := ch.ParseDSN(dsn)
		testkit.Must(b, err)
		db := ch.OpenDB(options)
		var size uint64
		_, err = db.ExecContext(b.Context(), "OPTIMIZE TABLE clicks FINAL")
		testkit.Must(b, err)
		testkit.Must(b, db.QueryRowContext(b.Context(), `SELECT sum(bytes_on_disk) FROM system.parts
			WHERE database = currentDatabase() AND table = 'clicks' AND active`).Scan(&size))
		testkit.Must(b, db.Close())
		reportBytes(b, int64(size), diskClicks, "click")
	})
	b.Run("link in SQLite", func(b *testing.B) {
		dir := b.TempDir()
		store, err := sqlite.Open(b.Context(), filepath.Join(dir, "links.db"))
		testkit.Must(b, err)
		createLinks(b, store)
		testkit.Must(b, store.Close())
		reportBytes(b, sizeOf(b, dir), diskLinks, "link")
	})
	b.Run("link in Postgres", func(b *testing.B) {
		dsn := engines.Postgres(b)
		store, err := postgres.Open(b.Context(), postgres.Config{DSN: dsn})
		testkit.Must(b, err)
		createLinks(b, store)
		testkit.Must(b, store.Close())
		conn, err := pgx.Connect(b.Context(), dsn)
		testkit.Must(b, err)
		var size int64
		testkit.Must(b, conn.QueryRow(b.Context(), "SELECT pg_total_relation_size('links')").Scan(&size))
		testkit.Must(b, conn.Close(b.Context()))
		reportBytes(b, size, diskLinks, "link")
	})
}

func reportBytes(b *testing.B, bytes int64, n int, of string) {
	b.Helper()
	b.ReportMetric(float64(bytes)/float64(n), "B/"+of)
	b.ReportMetric(0, "ns/op") // leaves the time out
}

// createLinks creates links as the API does.
func createLinks(b *testing.B, store schema.Database) {
	b.Helper()
	account := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(b, store.CreateAccount(b.Context(), &account))
	links := workload.NewLinks(diskLinks)
	var group errgroup.Group
	group.SetLimit(256)
	for i := range diskLinks {
		group.Go(func() error {
			return store.CreateLink(b.Context(), &schema.Link{AccountID: account.ID, Hash: links.Hash(i), URL: links.URL(i), Active: true, CreatedAt: time.Now()})
		})
	}
	testkit.Must(b, group.Wait())
}

// sizeOf returns the size of all files in a directory.
func sizeOf(b *testing.B, dir string) (size int64) {
	b.Helper()
	testkit.Must(b, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		if err == nil {
			size += info.Size()
		}
		return err
	}))
	return size
}
