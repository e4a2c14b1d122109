//go:build deploy

package upgrade_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/jackc/pgx/v5"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// Names of the files in an archive of what is on the engines. A table of ClickHouse has its statement in a file .sql
// and its rows in a file .tsv, with the columns of bytes in hexadecimal.
const (
	postgresFile   = "postgres.sql"
	topicFile      = "topic.jsonl"
	clickhouseFile = "clickhouse/"
	spoolFile      = "spool/"
)

// installation is databases and topics on real engines, and the spool of an edge.
type installation struct {
	env                         map[string]string
	postgres, kafka, clickhouse string
	spool                       string
}

// newInstallation returns an empty installation on engines that the tests share.
func newInstallation(t *testing.T) *installation {
	t.Helper()
	return installationOn(t, engines.Postgres(t), engines.Kafka(t), engines.ClickHouse(t))
}

func installationOn(t *testing.T, postgres, kafka, clickhouse string) *installation {
	t.Helper()
	topics := enginetest.Name()
	e := &installation{env: preset(), postgres: postgres, kafka: kafka, clickhouse: clickhouse,
		spool: filepath.Join(t.TempDir(), "spool")}
	maps.Copy(e.env, map[string]string{"POSTGRES_DSN": postgres, "KAFKA_BROKERS": kafka, "CLICKHOUSE_DSN": clickhouse,
		"KAFKA_CLICKS_TOPIC": topics + ".clicks", "KAFKA_DEAD_TOPIC": topics + ".dead",
		"KAFKA_CHANGES_TOPIC": topics + ".changes", "KAFKA_GROUP": topics})
	return e
}

// withNewDatabases returns the installation with other databases, which are empty.
func (e *installation) withNewDatabases(t *testing.T) *installation {
	t.Helper()
	other := *e
	other.postgres, other.clickhouse = engines.Postgres(t), engines.ClickHouse(t)
	other.env = maps.Clone(e.env)
	maps.Copy(other.env, map[string]string{"POSTGRES_DSN": other.postgres, "CLICKHOUSE_DSN": other.clickhouse})
	return &other
}

// topics returns a client of the topics. Those that it creates keep records for ever: fixtures are old.
func (e *installation) topics(t *testing.T) *stream.Client {
	t.Helper()
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.Clicks, cfg.Dead = e.kafka, e.env["KAFKA_CLICKS_TOPIC"], e.env["KAFKA_DEAD_TOPIC"]
	cfg.Changes, cfg.Group, cfg.Retention = e.env["KAFKA_CHANGES_TOPIC"], e.env["KAFKA_GROUP"], 0
	client, err := stream.New(cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
	testkit.Must(t, err)
	t.Cleanup(client.Close)
	return client
}

func (e *installation) openClickHouse(t *testing.T) driver.Conn {
	t.Helper()
	options, err := ch.ParseDSN(e.clickhouse)
	testkit.Must(t, err)
	conn, err := ch.Open(options)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Close(t, conn) })
	return conn
}

// topicRecord is a record of the clicks topic.
type topicRecord struct {
	Partition int
	Offset    int64
	Time      int64 // milliseconds of Unix time
	Value     []byte
}

// restoreTopic creates the topics and produces the records at their offsets.
func (e *installation) restoreTopic(t *testing.T, files map[string][]byte) {
	t.Helper()
	client := e.topics(t)
	testkit.Must(t, client.EnsureTopics(t.Context()))
	next := map[int]int64{}
	var batch stream.Batch
	for lines := bufio.NewScanner(bytes.NewReader(files[topicFile])); lines.Scan(); {
		var r topicRecord
		testkit.Must(t, json.Unmarshal(lines.Bytes(), &r))
		if r.Offset != next[r.Partition] {
			t.Fatalf("offset %d of partition %d follows %d", r.Offset, r.Partition, next[r.Partition])
		}
		next[r.Partition]++
		batch.Reset(time.UnixMilli(r.Time))
		batch.Append(nil, r.Value)
		testkit.Succeeds(t, func() error { return client.Produce(t.Context(), r.Partition, &batch) })
	}
	if len(next) == 0 {
		t.Fatal("the topic has no records")
	}
}

// restoreDatabases fills empty databases.
func (e *installation) restoreDatabases(t *testing.T, files map[string][]byte) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), e.postgres)
	testkit.Must(t, err)
	_, err = conn.PgConn().Exec(t.Context(), string(files[postgresFile])).ReadAll()
	testkit.Must(t, err)
	testkit.Must(t, conn.Close(t.Context()))

	clickhouse := e.openClickHouse(t)
	for name, content := range files {
		table, ok := strings.CutPrefix(name, clickhouseFile)
		if table, isSchema := strings.CutSuffix(table, ".sql"); ok && isSchema {
			testkit.Must(t, clickhouse.Exec(t.Context(), string(content)))
			insertRows(t, clickhouse, table, string(files[clickhouseFile+table+".tsv"]))
		}
	}
}

// skipIDs keeps new rows from getting the numbers of those that were lost with the database: the clicks of lost links
// are in the topic. The statement is that of deploy/manual/backup.md, whose commands deploy/test/e2e tests.
func (e *installation) skipIDs(t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), e.postgres)
	testkit.Must(t, err)
	_,
		err = conn.Exec(t.Context(),
		`SELECT setval(pg_get_serial_sequence(t, 'id'), nextval(pg_get_serial_sequence(t, 'id')) + 1000000)
		FROM unnest(ARRAY['public.accounts', 'public.domains', 'public.links', 'public.tokens']) AS t`)
	testkit.Must(t, err)
	testkit.Must(t, conn.Close(t.Context()))
}

// columns returns the columns of a table, to be read as or from text, and their names and types as text.
func columns(t *testing.T, conn driver.Conn, table string) (asText, fromText, structure string) {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT name, type FROM system.columns
		WHERE database = currentDatabase() AND table = ? ORDER BY position`, table)
	testkit.Must(t, err)
	defer testkit.Close(t, rows)
	var read, write, types []string
	for rows.Next() {
		var name, kind string
		testkit.Must(t, rows.Scan(&name, &kind))
		switch {
		case strings.HasPrefix(kind, "FixedString"):
			read, write = append(read, "hex("+name+")"), append(write, "unhex("+name+")")
			kind = "String"
		case name == "insert_before": // rows of the past are inserted without it
			read, write = append(read, name), append(write, "toDateTime(0, 'UTC')")
		default:
			read, write = append(read, name), append(write, name)
		}
		types = append(types, name+" "+kind)
	}
	testkit.Must(t, rows.Err())
	return strings.Join(read, ", "), strings.Join(write, ", "), strings.Join(types, ", ")
}

// insertRows inserts lines of text with values separated by tabs.
func insertRows(t *testing.T, conn driver.Conn, table, rows string) {
	t.Helper()
	if rows == "" {
		return
	}
	_, fromText, structure := columns(t, conn, table)
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	ctx := ch.Context(context.WithoutCancel(t.Context()), ch.WithSettings(ch.Settings{"max_query_size": 16 << 20}))
	testkit.Must(t, conn.Exec(ctx, fmt.Sprintf("INSERT INTO %s SELECT %s FROM format('TSV', '%s', '%s')",
		table, fromText, quote.Replace(structure), quote.Replace(rows))))
	var inserted uint64
	testkit.Must(t, conn.QueryRow(t.Context(), "SELECT count() FROM "+table).Scan(&inserted))
	testkit.Equal(t, "rows of "+table, int(inserted), strings.Count(rows, "\n"))
}

// spoolOf returns the files of the spool in an archive.
func spoolOf(files map[string][]byte) map[string][]byte {
	spool := map[string][]byte{}
	for name, content := range files {
		if name, ok := strings.CutPrefix(name, spoolFile); ok {
			spool[name] = content
		}
	}
	return spool
}
