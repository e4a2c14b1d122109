// Package shards_test counts clicks in two ClickHouse engines that are the shards of a cluster, behind Distributed tables.
//
// The engines are chserver's. They differ from a replicated cluster: tables are of engine MergeTree in place of
// ReplicatedMergeTree, ON CLUSTER does not work, so the tests execute the statements of the migrations on each node, and rows are
// aggregated on the node that is asked. What is tested is where batches go, that tokens and positions fence them there, and what
// happens while a shard is away.
package shards_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"text/template"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/goleak"

	"linkstream/deploy/testengines"
	"linkstream/deploy/testengines/enginetest"
	"linkstream/schema/clickhouse"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(suite{m}) }

// suite runs the tests and then stops the shards.
type suite struct{ m *testing.M }

func (s suite) Run() int {
	code := s.m.Run()
	for _, e := range shared.engines {
		if err := e.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.RemoveAll(shared.dir)
	return code
}

// shared are the shards of all tests.
var shared struct {
	once    sync.Once
	dir     string
	engines []*testengines.Engine
	err     error

	schema []string // statements that make the tables of the current schema
}

func startShards(t *testing.T) []*testengines.Engine {
	t.Helper()
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "linkstream-shards-"); shared.err == nil {
			// Without the test's context: the engines serve other tests, too.
			log := slog.New(slog.NewTextHandler(os.Stderr, nil))
			shared.engines, shared.err = testengines.StartShards(context.Background(), shared.dir, log)
		}
	})
	if shared.err != nil {
		enginetest.Unavailable(t, shared.err)
	}
	return shared.engines
}

// cluster is a database on all shards.
type cluster struct {
	engines []*testengines.Engine
	dsns    []string
	nodes   []driver.Conn
}

// newCluster returns a cluster with the tables of the current schema.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c, name := &cluster{engines: startShards(t)}, enginetest.Name()
	for _, e := range c.engines {
		admin := open(t, e.Addr)
		testkit.Must(t, admin.Exec(t.Context(), "CREATE DATABASE "+name))
		t.Cleanup(func() {
			if err := admin.Exec(context.WithoutCancel(t.Context()), "DROP DATABASE "+name); err != nil {
				t.Error(err)
			}
			testkit.Close(t, admin)
		})
		u, err := url.Parse(e.Addr)
		testkit.Must(t, err)
		u.Path = "/" + name
		c.dsns = append(c.dsns, u.String())
		node := open(t, u.String())
		t.Cleanup(func() { testkit.Close(t, node) })
		c.nodes = append(c.nodes, node)
	}
	if shared.schema == nil {
		c.execute(t, migrations(t, name)...)
		shared.schema = c.schema(t)
		return c
	}
	c.execute(t, shared.schema...)
	return c
}

// execute executes statements on each node. $DATABASE stands for the database.
func (c *cluster) execute(t *testing.T, statements ...string) {
	t.Helper()
	for i, node := range c.nodes {
		u, err := url.Parse(c.dsns[i])
		testkit.Must(t, err)
		for _, statement := range statements {
			if err := node.Exec(t.Context(), strings.ReplaceAll(statement, "$DATABASE", u.Path[1:])); err != nil {
				t.Fatalf("%v\n%s", err, statement)
			}
		}
	}
}

// schema returns the statements that make the tables as all migrations have made them, which takes less time.
func (c *cluster) schema(t *testing.T) (statements []string) {
	t.Helper()
	rows, err := c.nodes[0].Query(t.Context(), `SELECT name, replaceAll(create_table_query, currentDatabase(), '$DATABASE')
		FROM system.tables WHERE database = currentDatabase()`)
	testkit.Must(t, err)
	defer testkit.Close(t, rows)
	for rows.Next() {
		var name, create string
		testkit.Must(t, rows.Scan(&name, &create))
		statements = append(statements, create)
		if name == versions {
			statements = append(statements, fillVersions)
		}
	}
	testkit.Must(t, rows.Err())
	return statements
}

// The table of applied migrations, which goose makes on one server.
const (
	versions       = "goose_db_version"
	createVersions = "CREATE TABLE " + versions + " (version_id Int64, is_applied UInt8, date Date DEFAULT now(), " +
		"tstamp DateTime DEFAULT now()) ENGINE = MergeTree ORDER BY version_id"
)

var fillVersions = fmt.Sprintf("INSERT INTO %s (version_id, is_applied) SELECT number, 1 FROM numbers(%d)", versions, len(migrationFiles)+1)

var migrationFiles, _ = filepath.Glob("../../schema/clickhouse/migrations/*.sql") // the pattern is valid

func open(t *testing.T, dsn string) driver.Conn {
	t.Helper()
	options, err := ch.ParseDSN(dsn)
	testkit.Must(t, err)
	conn, err := ch.Open(options)
	testkit.Must(t, err)
	return conn
}

var replicated = regexp.MustCompile(`Replicated(\w*MergeTree)\([^)]*\)`)

// migrations returns the statements of all migrations for a node.
func migrations(t *testing.T, database string) (all []string) {
	t.Helper()
	if len(migrationFiles) < 5 {
		t.Fatalf("only %d migrations", len(migrationFiles))
	}
	var text strings.Builder
	for _, file := range migrationFiles {
		parsed, err := template.ParseFiles(file)
		testkit.Must(t, err)
		testkit.Must(t, parsed.Execute(&text, map[string]string{"Cluster": testengines.ShardsCluster, "Database": database,
			"Rows": "clicks_of_shard", "OnCluster": ""}))
	}
	text.WriteString(createVersions + ";\n" + fillVersions + ";\n")
	for statement := range strings.SplitSeq(replicated.ReplaceAllString(text.String(), "$1"), ";\n") {
		if statement = strings.TrimSpace(statement); statement != "" {
			all = append(all, statement)
		}
	}
	return all
}

// store returns a store on the cluster whose queries go to the first node.
func (c *cluster) store(t *testing.T) *clickhouse.ClickStore {
	t.Helper()
	store, err := clickhouse.OpenClickStore(t.Context(), clickhouse.Config{DSN: c.dsns[0], Cluster: testengines.ShardsCluster})
	testkit.Must(t, err)
	t.Cleanup(func() { store.Close() })
	return store
}

// rows returns how many rows each shard has.
func (c *cluster) rows(t *testing.T) (rows []int) {
	t.Helper()
	for _, node := range c.nodes {
		var n uint64
		testkit.Must(t, node.QueryRow(t.Context(), "SELECT count() FROM clicks_of_shard").Scan(&n))
		rows = append(rows, int(n))
	}
	return rows
}
