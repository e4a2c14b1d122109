package clickhouse

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/pressly/goose/v3"

	"linkstream/schema/migration"
)

//go:embed migrations
var migrationFiles embed.FS

const (
	migrateTimeout = time.Minute        // of all migrations together
	lockStale      = 2 * migrateTimeout // the holder of an older lock must have died
)

// layout has the values for the templates of migrations.
type layout struct{ Database, Cluster string }

// Rows is the name of the table with the rows. On a cluster, clicks is the Distributed table over them.
func (l layout) Rows() string {
	if l.Cluster != "" {
		return "clicks_of_shard"
	}
	return "clicks"
}

// OnCluster is the clause that makes all nodes of a cluster execute a statement.
func (l layout) OnCluster() string {
	if l.Cluster != "" {
		return "ON CLUSTER '" + l.Cluster + "'"
	}
	return ""
}

// versionTable creates goose's table so that all nodes of a cluster share its rows.
const versionTable = `CREATE TABLE IF NOT EXISTS ` + goose.DefaultTablename + ` {{.OnCluster}} (
	version_id Int64, is_applied UInt8, date Date DEFAULT now(), tstamp DateTime DEFAULT now())
	ENGINE = ReplicatedMergeTree('/clickhouse/tables/{uuid}', '{shard}-{replica}') ORDER BY version_id`

// migrate applies the migrations that the database does not have. A lock lets one of several processes do so.
// ClickHouse has no lock that ends with its holder, so all statements of migrations may be executed twice.
func migrate(ctx context.Context, options *ch.Options, l layout) (err error) {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	db := ch.OpenDB(options)
	defer func() { err = errors.Join(err, db.Close()) }()
	all, err := l.migrations()
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if err := l.ensureVersionTable(ctx, db); err != nil {
		return fmt.Errorf("create version table: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectClickHouse, db, nil, goose.WithGoMigrations(all...),
		goose.WithLocker(tableLock{l, "migration_lock", lockStale}), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	return migration.Up(ctx, provider)
}

// checkSchema returns an error unless the database has exactly the migrations that the program has.
func checkSchema(ctx context.Context, options *ch.Options) (err error) {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	db := ch.OpenDB(options)
	defer func() { err = errors.Join(err, db.Close()) }()
	return migration.Check(ctx, goose.DialectClickHouse, db, files)
}

// ensureVersionTable creates the version table on a cluster. A statement for all nodes fails while any of them is down,
// so a program that finds the table does without.
func (l layout) ensureVersionTable(ctx context.Context, db *sql.DB) error {
	if l.Cluster == "" {
		return nil // goose creates it
	}
	const count = `SELECT count() > 0 FROM system.tables WHERE database = currentDatabase() AND name = ?`
	var exists bool
	if err := db.QueryRowContext(ctx, count, goose.DefaultTablename).Scan(&exists); err != nil || exists {
		return err
	}
	return l.exec(ctx, db, versionTable)
}

// migrations returns a migration per file.
func (l layout) migrations() ([]*goose.Migration, error) {
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var all []*goose.Migration
	for _, name := range files {
		version, err := goose.NumericComponent(path.Base(name))
		if err != nil {
			return nil, err
		}
		text, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		up := func(ctx context.Context, db *sql.DB) error { return l.exec(ctx, db, string(text)) }
		all = append(all, goose.NewGoMigration(version, &goose.GoFunc{RunDB: up}, nil))
	}
	return all, nil
}

// exec executes the statements of a template.
func (l layout) exec(ctx context.Context, db *sql.DB, text string) error {
	statements, err := l.statements(text)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// statements executes a template and returns its statements, each of which ends with a semicolon at the end of a line.
func (l layout) statements(text string) (all []string, err error) {
	t, err := template.New("").Parse(text)
	if err != nil {
		return nil, err
	}
	var expanded strings.Builder
	if err := t.Execute(&expanded, l); err != nil {
		return nil, err
	}
	for statement := range strings.SplitSeq(expanded.String(), ";\n") {
		if statement = strings.TrimSpace(statement); statement != "" {
			all = append(all, statement)
		}
	}
	return all, nil
}
