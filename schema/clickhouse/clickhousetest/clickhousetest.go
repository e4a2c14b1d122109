// Package clickhousetest makes the tables of a click store in new databases of ClickHouse, for tests. The migrations
// cost the server more CPU time than all else that a small test does, so a process executes them once and then creates
// tables like those that they have made.
package clickhousetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/pressly/goose/v3"

	"linkstream/schema/clickhouse"
)

// made are the statements that make the tables. There are none before the first database is migrated.
var made struct {
	sync.Mutex
	statements []string
}

// Open is clickhouse.OpenClickStore.
func Open(ctx context.Context, cfg clickhouse.Config) (*clickhouse.ClickStore, error) {
	if err := Migrate(ctx, cfg.DSN); err != nil {
		return nil, err
	}
	return clickhouse.OpenClickStore(ctx, cfg)
}

// Migrate makes the tables in a database that has none, and leaves any other as it is. Calls for the same database must
// not overlap.
func Migrate(ctx context.Context, dsn string) (err error) {
	options, err := ch.ParseDSN(dsn)
	if err != nil {
		return err
	}
	conn, err := ch.Open(options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	var tables uint64
	const count = `SELECT count() FROM system.tables WHERE database = currentDatabase()`
	if err := conn.QueryRow(ctx, count).Scan(&tables); err != nil || tables > 0 {
		return err
	}
	statements, err := first(ctx, dsn, conn)
	for i := 0; i < len(statements) && err == nil; i++ {
		err = conn.Exec(ctx, statements[i])
	}
	return err
}

// first migrates the first database of this process. It returns the statements for another one.
func first(ctx context.Context, dsn string, conn driver.Conn) ([]string, error) {
	made.Lock()
	defer made.Unlock()
	if made.statements != nil {
		return made.statements, nil
	}
	store, err := clickhouse.OpenClickStore(ctx, clickhouse.Config{DSN: dsn})
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	made.statements, err = read(ctx, conn)
	return nil, err
}

// read returns the statements that made the tables of the database, and a statement for its list of migrations.
func read(ctx context.Context, conn driver.Conn) (statements []string, err error) {
	var database string
	const tables = `SELECT currentDatabase(), groupArray(create_table_query) FROM system.tables WHERE database = ` +
		`currentDatabase()`
	if err := conn.QueryRow(ctx, tables).Scan(&database, &statements); err != nil {
		return nil, err
	}
	for i, statement := range statements {
		statements[i] = strings.Replace(statement, " "+database+".", " ", 1)
	}
	var versions string
	row := conn.QueryRow(ctx, `SELECT toString(groupArray(version_id)) FROM `+goose.DefaultTablename)
	if err := row.Scan(&versions); err != nil {
		return nil, err
	}
	return append(statements, fmt.Sprintf(`INSERT INTO %s (version_id, is_applied) SELECT arrayJoin(%s), 1`,
		goose.DefaultTablename, versions)), nil
}
