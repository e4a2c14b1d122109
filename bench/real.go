package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"linkstream/bench/proc"
	"linkstream/deploy/testengines"
	"linkstream/schema/clickhouse"
	"linkstream/schema/postgres"
)

const (
	mergeTimeout = 5 * time.Minute
	mergePause   = 5 // seconds without a merge, after which none is expected
)

// bareConns is how many connections bare loops have to Postgres: as many as pgxpool has by default.
const bareConns = 4

// real are Postgres, Kafka and ClickHouse, and each service is a process of its own.
type real struct {
	bench  *bench
	local  *testengines.All
	own    *pgxpool.Pool // to the links, beside the store
	edgeAt string        // program, once it is built
}

func (b *bench) startReal(ctx context.Context) (engines, error) {
	b.say("starting Postgres, Kafka and ClickHouse")
	for _, name := range []string{testengines.PostgresEnv, testengines.KafkaEnv, testengines.ClickHouseEnv, testengines.ClickHouseHTTPEnv} {
		if err := os.Unsetenv(name); err != nil { // what runs already is not for millions of rows of ours
			return nil, err
		}
	}
	all, err := testengines.StartAll(ctx, filepath.Join(b.dir, "engines"), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	b.stops = append(b.stops, all.Close)
	for _, e := range all.Engines() {
		b.report.Engines = append(b.report.Engines, e.Name+" "+e.Version)
		b.say("%v", e)
	}
	pool, err := pgxpool.New(ctx, all.Postgres.Addr)
	if err != nil {
		return nil, err
	}
	b.stops = append(b.stops, func() error { pool.Close(); return nil })
	return &real{bench: b, local: all, own: pool}, nil
}

func (r *real) openLinks(ctx context.Context) (linkStore, error) {
	return postgres.Open(ctx, r.local.Postgres.Addr)
}

func (r *real) insertLinks(ctx context.Context, account int64, links linkSet) error {
	now, n := time.Now(), 0
	_, err := r.own.CopyFrom(ctx, pgx.Identifier{"links"},
		[]string{"account_id", "domain_id", "hash", "url", "active", "ordinal", "created_at"},
		pgx.CopyFromFunc(func() ([]any, error) {
			if n == links.count {
				return nil, nil
			}
			n++
			return []any{account, int64(0), links.hash(n - 1), links.url(n - 1), true, int64(n), now}, nil
		}))
	if err != nil {
		return err
	}
	_, err = r.own.Exec(ctx, `UPDATE accounts SET link_count = $1 WHERE id = $2`, links.count, account)
	return err
}

// openClicks opens a database of ClickHouse.
func (r *real) openClicks(ctx context.Context, name string) (clickStore, error) {
	dsn, err := r.clickhouse(ctx, name)
	if err != nil {
		return nil, err
	}
	return clickhouse.OpenClicks(ctx, clickhouse.Config{DSN: dsn})
}

// clickhouse returns the address of a database, which it makes.
func (r *real) clickhouse(ctx context.Context, name string) (dsn string, err error) {
	if name == "" {
		return r.local.ClickHouse.Addr, nil
	}
	conn, err := openClickHouse(r.local.ClickHouse.Addr)
	if err != nil {
		return "", err
	}
	if err := errors.Join(conn.Exec(ctx, "CREATE DATABASE `"+name+"`"), conn.Close()); err != nil {
		return "", err
	}
	at, err := url.Parse(r.local.ClickHouse.Addr)
	if err != nil {
		return "", err
	}
	at.Path = "/" + name
	return at.String(), nil
}

// rest waits for merges, which clicks of a month would have had a month for.
func (r *real) rest(ctx context.Context) error {
	conn, err := openClickHouse(r.local.ClickHouse.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, mergeTimeout)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for quiet := 0; quiet < mergePause; <-tick.C {
		var merges uint64
		if err := conn.QueryRow(ctx, "SELECT count() FROM system.merges").Scan(&merges); err != nil {
			return fmt.Errorf("wait for merges: %w", err)
		}
		if quiet++; merges > 0 {
			quiet = 0
		}
	}
	return nil
}

func openClickHouse(dsn string) (ch.Conn, error) {
	options, err := ch.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	return ch.Open(options)
}

func (r *real) broker(context.Context) (addr string, processes []process, err error) {
	return r.local.Kafka.Addr, nil, nil
}

func (r *real) edge(ctx context.Context) (program string, args []string, err error) {
	if r.edgeAt == "" {
		if r.edgeAt, err = r.bench.build(ctx, "edge"); err != nil {
			return "", nil, err
		}
	}
	return r.edgeAt, []string{"-postgres.dsn", r.local.Postgres.Addr}, nil
}

func (r *real) start(ctx context.Context) (*runningService, error) {
	s, err := newService("services")
	if err != nil {
		return nil, err
	}
	links := []string{"-postgres.dsn", r.local.Postgres.Addr}
	topics := []string{"-kafka.brokers", r.local.Kafka.Addr, "-log.level", "warn"}
	clicks := []string{"-clickhouse.dsn", r.local.ClickHouse.Addr}
	edge, args, err := r.edge(ctx)
	if err != nil {
		return nil, err
	}
	for _, node := range []struct {
		name, program string
		args          [][]string
	}{
		{"ingest", "", [][]string{clicks, topics, {"-ingest.listen", s.ingest}}},
		{"api", "", [][]string{links, clicks, topics, {"-api.listen", s.api.addr(), "-bootstrap.email", ""}}},
		{"edge", edge, [][]string{args, topics, {"-edge.listen", s.edge, "-edge.url", "http://" + s.edge,
			"-spool.dir", filepath.Join(r.bench.dir, "spool")}}},
	} {
		if node.program == "" {
			if node.program, err = r.bench.build(ctx, node.name); err != nil {
				return nil, err
			}
		}
		var all []string
		for _, args := range node.args {
			all = append(all, args...)
		}
		child, err := r.bench.spawn(node.name, nil, node.program, all...)
		if err != nil {
			return nil, err
		}
		s.children = append(s.children, child)
	}
	usage := func(i int, name string) process { return process{name, s.children[i].Usage} }
	s.atEdge = []process{usage(2, "edge"), usage(0, "ingest")}
	s.atAPI = []process{usage(1, "api")}
	return s, nil
}

func (r *real) bareInserts(context.Context) (*subject, error) {
	links := newLinkSet(maxLinks)
	return newLoop("bare pgx insert", bareConns, func(ctx context.Context, n int64) error {
		var id int64
		return r.own.QueryRow(ctx, `
			INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
			VALUES (1, 0, $1, $2, true, $3, $4) RETURNING id`,
			links.hash(int(n)), links.url(int(n)), 1<<40+n, time.Now()).Scan(&id)
	}), nil
}

// bareCounting is the loop of clickhouse-go's documentation, into the service's own table.
func (r *real) bareCounting(ctx context.Context, clicks int, fetch *subject) ([]*subject, error) {
	store, err := r.openClicks(ctx, "bare") // makes the table
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	at, err := url.Parse(r.local.ClickHouse.Addr)
	if err != nil {
		return nil, err
	}
	at.Path = "/bare"
	conn, err := openClickHouse(at.String())
	if err != nil {
		return nil, err
	}
	r.bench.stops = append(r.bench.stops, conn.Close)
	bare := &subject{name: "bare clickhouse-go insert", processes: []process{{"bench", proc.Self}}}
	inserts := &insertLoop{conn: conn, clicks: clicks, history: newHistory(newLinkSet(r.bench.cfg.Links), 0), done: &bare.done}
	bare.work = inserts.work
	return []*subject{bare, fetch}, nil
}
