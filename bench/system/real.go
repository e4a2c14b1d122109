package system

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	mathrand "math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/segmentio/kafka-go"

	"linkstream/bench/proc"
	"linkstream/bench/workload"
	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/linkstore/postgres"
)

const (
	clickHouse = "ClickHouse"

	mergeTimeout = 5 * time.Minute
	mergePause   = 5 // seconds without a merge, after which no more are expected
	bareConns    = 4 // connections of a bare loop to Postgres, the default of pgxpool

	cleanupTimeout = 30 * time.Second
)

// realEngines is Postgres, Kafka and ClickHouse. Each service is a process of its own.
type realEngines struct {
	launcher             *Launcher
	postgres, clickhouse string // URLs of empty databases
	broker               Broker
	versions             []string
	pool                 *pgxpool.Pool  // to the links, separate from the store's
	processes            []proc.Process // of the engines, as far as they are known
}

func (l *Launcher) startReal(ctx context.Context) (Engines, error) {
	r := &realEngines{launcher: l, postgres: l.cfg.Postgres, clickhouse: l.cfg.ClickHouse,
		broker: Broker{Addrs: l.cfg.Kafka, prefix: "bench_" + strings.ToLower(rand.Text()[:8]) + "."}}
	if r.postgres == "" {
		if err := r.startAll(ctx); err != nil {
			return nil, err
		}
	} else if err := r.checkEmpty(ctx); err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, r.postgres)
	if err != nil {
		return nil, err
	}
	l.group.OnClose(func() error { pool.Close(); return nil })
	r.pool = pool
	r.findProcesses()
	return r, nil
}

// startAll starts engines of the run's own.
func (r *realEngines) startAll(ctx context.Context) error {
	r.launcher.progress("starting Postgres, Kafka and ClickHouse")
	// Engines of the environment are shared with others, and are not to be filled with millions of rows.
	for _, name := range []string{testengines.PostgresEnv, testengines.KafkaEnv, testengines.ClickHouseEnv,
		testengines.ClickHouseHTTPEnv} {
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	all, err := testengines.OpenAll(ctx, r.launcher.group.Path("engines"), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	r.launcher.group.OnClose(all.Close)
	r.postgres, r.broker.Addrs, r.clickhouse = all.Postgres.Addr, all.Kafka.Addr, all.ClickHouse.Addr
	for _, e := range all.Engines() {
		r.launcher.progress("%v", e)
		r.versions = append(r.versions, e.Name+" "+e.Version)
	}
	return nil
}

// findProcesses finds the processes of engines on this machine by their ports.
func (r *realEngines) findProcesses() {
	for _, e := range []struct{ name, url string }{
		{"Postgres", r.postgres}, {"Kafka", "kafka://" + r.broker.Addrs}, {clickHouse, r.clickhouse},
	} {
		u, err := url.Parse(e.url)
		if err != nil {
			continue
		}
		p, err := proc.Listening(e.name, u.Host)
		if err != nil {
			r.launcher.progress("%s: without CPU time: %v", e.name, err)
			continue
		}
		r.processes = append(r.processes, p)
	}
}

// checkEmpty returns an error if a named database is in use: a run would mix its rows with other rows. When the run
// ends, it removes its topics.
func (r *realEngines) checkEmpty(ctx context.Context) error {
	links, err := r.OpenLinks(ctx)
	if err != nil {
		return fmt.Errorf("-postgres: %w", err)
	}
	if err := links.Close(); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, r.postgres)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var version string
	var accounts int
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version'), count(*) FROM accounts`).Scan(&version, &accounts)
	if err != nil {
		return err
	}
	if accounts > 0 {
		return errors.New("-postgres: the database is not empty")
	}
	r.versions = append(r.versions, "postgres "+version)
	clicks, err := r.OpenClicks(ctx, "")
	if err != nil {
		return fmt.Errorf("-clickhouse: %w", err)
	}
	if err := clicks.Close(); err != nil {
		return err
	}
	db, err := openClickHouse(r.clickhouse)
	if err != nil {
		return err
	}
	defer db.Close()
	var rows uint64
	if err := db.QueryRow(ctx, "SELECT version(), (SELECT count() FROM clicks)").Scan(&version, &rows); err != nil {
		return err
	}
	if rows > 0 {
		return errors.New("-clickhouse: the database is not empty")
	}
	r.versions = append(r.versions, "clickhouse "+version)
	r.launcher.group.OnClose(r.removeTopics)
	return nil
}

// removeTopics removes the topics of the run.
func (r *realEngines) removeTopics() error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	client := &kafka.Client{Addr: kafka.TCP(strings.Split(r.broker.Addrs, ",")...)}
	all, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return fmt.Errorf("remove topics: %w", err)
	}
	var ours []string
	for _, topic := range all.Topics {
		if strings.HasPrefix(topic.Name, r.broker.prefix) {
			ours = append(ours, topic.Name)
		}
	}
	if len(ours) == 0 {
		return nil
	}
	res, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: ours})
	if err != nil {
		return fmt.Errorf("remove topics: %w", err)
	}
	errs := slices.Collect(maps.Values(res.Errors))
	return errors.Join(errs...)
}

func (r *realEngines) Versions() []string { return r.versions }

func (r *realEngines) OpenLinks(ctx context.Context) (LinkStore, error) {
	return postgres.Open(ctx, postgres.Config{DSN: r.postgres})
}

// InsertLinks copies the links into the table.
func (r *realEngines) InsertLinks(ctx context.Context, account int64, links workload.Links) error {
	now, n := time.Now(), 0
	_, err := r.pool.CopyFrom(ctx, pgx.Identifier{"links"},
		[]string{"account_id", "domain_id", "hash", "url", "active", "ordinal", "created_at"},
		pgx.CopyFromFunc(func() ([]any, error) {
			if n == links.Count {
				return nil, nil
			}
			n++
			return []any{account, int64(0), links.Hash(n - 1), links.URL(n - 1), true, int64(n), now}, nil
		}))
	if err != nil {
		return err
	}
	_, err = r.pool.Exec(ctx, `UPDATE accounts SET link_count = $1 WHERE id = $2`, links.Count, account)
	return err
}

// OpenClicks opens a database of ClickHouse. A separate one is dropped at the end of the run.
func (r *realEngines) OpenClicks(ctx context.Context, name string) (ClickStore, error) {
	if name == "" {
		return clickhouse.OpenClickStore(ctx, clickhouse.Config{DSN: r.clickhouse})
	}
	dsn, err := r.createDatabase(ctx, name)
	if err != nil {
		return nil, err
	}
	return clickhouse.OpenClickStore(ctx, clickhouse.Config{DSN: dsn})
}

// createDatabase creates an empty database and returns its DSN. It is dropped at the end of the run.
func (r *realEngines) createDatabase(ctx context.Context, name string) (dsn string, err error) {
	u, err := url.Parse(r.clickhouse)
	if err != nil {
		return "", err
	}
	u.Path += "_" + name
	quoted := "`" + u.Path[1:] + "`"
	r.launcher.group.OnClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		return r.execClickHouse(ctx, "DROP DATABASE IF EXISTS "+quoted)
	})
	return u.String(), r.execClickHouse(ctx, "CREATE DATABASE "+quoted)
}

func (r *realEngines) execClickHouse(ctx context.Context, statement string) error {
	conn, err := openClickHouse(r.clickhouse)
	if err != nil {
		return err
	}
	return errors.Join(conn.Exec(ctx, statement), conn.Close())
}

func openClickHouse(dsn string) (ch.Conn, error) {
	options, err := ch.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	return ch.Open(options)
}

// AwaitMerges waits until ClickHouse merges no parts. In production, clicks of a month have a month to be merged.
func (r *realEngines) AwaitMerges(ctx context.Context) error {
	conn, err := openClickHouse(r.clickhouse)
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
		if err := conn.QueryRow(ctx, "SELECT count() FROM system.merges WHERE database = currentDatabase()").Scan(
			&merges); err != nil {
			return fmt.Errorf("wait for merges: %w", err)
		}
		if quiet++; merges > 0 {
			quiet = 0
		}
	}
	return nil
}

func (r *realEngines) ClickProcesses() (all []proc.Process) {
	for _, p := range r.processes {
		if p.Name == clickHouse {
			all = append(all, p)
		}
	}
	return all
}

func (r *realEngines) Broker() *Broker { return &r.broker }

func (r *realEngines) EdgeCommand(ctx context.Context) (program string, args []string, err error) {
	program, err = r.launcher.program(ctx, "edge")
	return program, []string{"-postgres.dsn", r.postgres}, err
}

func (r *realEngines) BareLinkInsert(context.Context) (LinkCall, error) {
	links := workload.NewLinks(workload.MaxLinks)
	return LinkCall{"bare pgx insert", bareConns, func(ctx context.Context, n int64) error {
		var id int64
		return r.pool.QueryRow(ctx, `
			INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
			VALUES (1, 0, $1, $2, true, $3, $4) RETURNING id`,
			links.Hash(int(n)), links.URL(int(n)), 1<<40+n, time.Now()).Scan(&id)
	}}, nil
}

// BareLinkLookup returns look-ups of one row each.
func (r *realEngines) BareLinkLookup(_ context.Context, links workload.Links) (LinkCall, error) {
	return LinkCall{"bare pgx look-up", bareConns, func(ctx context.Context, _ int64) error {
		var id int64
		var url string
		return r.pool.QueryRow(ctx, `SELECT id, url FROM links WHERE domain_id = 0 AND hash = $1`,
			links.Hash(mathrand.IntN(links.Count))).Scan(&id, &url)
	}}, nil
}

const insertClick = `INSERT INTO clicks (link_id, account_id, clicked_at, device, browser, referrer, country,
	kafka_partition, kafka_offset, kafka_next, incarnation, lane, seq, month)`

// BareClickInsert inserts into a table like the system's own, in a database of its own.
func (r *realEngines) BareClickInsert(ctx context.Context) (ClickInsert, error) {
	dsn, err := r.createDatabase(ctx, "bare")
	if err != nil {
		return nil, err
	}
	store, err := clickhouse.OpenClickStore(ctx, clickhouse.Config{DSN: dsn}) // creates the tables
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	conn, err := openClickHouse(dsn)
	if err != nil {
		return nil, err
	}
	r.launcher.group.OnClose(conn.Close)
	return func(ctx context.Context, b *schema.ClickBatch, rows int) error {
		ctx = ch.Context(ctx, ch.WithSettings(ch.Settings{"async_insert": 0}))
		block, err := conn.PrepareBatch(ctx, insertClick)
		if err != nil {
			return err
		}
		for i := range rows {
			err := block.Append(b.LinkID[i], b.AccountID[i], b.ClickedAt[i], string(b.Device[i]), b.Browser[i],
				b.Referrer[i], b.Country[i], int32(0), b.Offset[i], int64(0), b.Lane[i].Incarnation[:], b.Lane[i].Number,
				b.Seq[i], uint32(202611))
			if err != nil {
				return err
			}
		}
		return block.Send()
	}, nil
}
