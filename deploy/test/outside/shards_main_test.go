//go:build deploy

package outside_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/deploy/test/launch"
	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/clickhouse"
	"linkstream/schema/clickhouse/clickhousetest"
	"linkstream/schema/testkit"
)

// The tests of shards count clicks in two ClickHouse engines that are the shards of a cluster, behind Distributed
// tables.
//
// The engines are chserver's. They differ from a replicated cluster: tables are of engine MergeTree in place of
// ReplicatedMergeTree, ON CLUSTER does not work, so the tests migrate each node on its own, and rows are aggregated on
// the node that is asked. The tests are about where batches go, that tokens and positions fence them there, and what
// happens while a shard is away.

// withShards runs tests and then stops the shards.
type withShards struct{ tests launch.Runner }

func (s withShards) Run() int {
	code := s.tests.Run()
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
	testkit.Must(t, shared.err)
	return shared.engines
}

// cluster is a database on all shards.
type cluster struct {
	engines []*testengines.Engine
	dsns    []string
	nodes   []driver.Conn
}

// newCluster returns a cluster with the tables of the current schema, as the migrations for a cluster make them on it.
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
	for _, dsn := range c.dsns {
		testkit.Must(t, clickhousetest.Migrate(t.Context(), dsn))
	}
	c.execute(t, "RENAME TABLE clicks TO clicks_of_shard", "CREATE TABLE clicks AS clicks_of_shard ENGINE = Distributed('"+
		testengines.ShardsCluster+"', '$DATABASE', 'clicks_of_shard', kafka_partition)")
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

func open(t *testing.T, dsn string) driver.Conn {
	t.Helper()
	options, err := ch.ParseDSN(dsn)
	testkit.Must(t, err)
	conn, err := ch.Open(options)
	testkit.Must(t, err)
	return conn
}

// store returns a store on the cluster whose queries go to the first node.
func (c *cluster) store(t *testing.T) *clickhouse.ClickStore {
	t.Helper()
	store, err := clickhouse.OpenClickStore(t.Context(),
		clickhouse.Config{DSN: c.dsns[0], Cluster: testengines.ShardsCluster})
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
