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

	"linkstream/schema"
)

//go:embed migrations
var migrations embed.FS

const (
	migrateTimeout = time.Minute        // for all migrations together
	lockStale      = 2 * migrateTimeout // after which the lock's holder must have died
)

// layout is what migrations are templates of.
type layout struct{ Database, Cluster string }

// Rows is the table that holds the rows. On a cluster, clicks is the Distributed table in front of it.
func (l layout) Rows() string {
	if l.Cluster != "" {
		return "clicks_of_shard"
	}
	return "clicks"
}

// OnCluster has a statement run on each node.
func (l layout) OnCluster() string {
	if l.Cluster != "" {
		return "ON CLUSTER '" + l.Cluster + "'"
	}
	return ""
}

// versionTable is goose's own, but the same on all nodes of a cluster.
const versionTable = `CREATE TABLE IF NOT EXISTS ` + goose.DefaultTablename + ` {{.OnCluster}} (
	version_id Int64, is_applied UInt8, date Date DEFAULT now(), tstamp DateTime DEFAULT now())
	ENGINE = ReplicatedMergeTree('/clickhouse/tables/{uuid}', '{shard}-{replica}') ORDER BY version_id`

// migrate applies the migrations that the database has not seen. The lock lets one node do so at a time. ClickHouse has
// no lock that ends with its holder, so each statement is also written to do no harm where it is run twice.
func migrate(ctx context.Context, options *ch.Options, to layout) (err error) {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	db := ch.OpenDB(options)
	defer func() { err = errors.Join(err, db.Close()) }()
	known, err := to.migrations()
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if to.Cluster != "" {
		if err := to.exec(ctx, db, versionTable); err != nil {
			return fmt.Errorf("create version table: %w", err)
		}
	}
	provider, err := goose.NewProvider(goose.DialectClickHouse, db, nil, goose.WithGoMigrations(known...),
		goose.WithLocker(tableLock{to, lockStale}), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if current > target {
		return schema.Errorf(schema.CodeInternal,
			"its schema has version %d, made by a newer linkstream: this one knows %d", current, target)
	}
	if current == target {
		return nil
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate from version %d to %d: %w", current, target, err)
	}
	return nil
}

// migrations returns one for each file.
func (l layout) migrations() ([]*goose.Migration, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var all []*goose.Migration
	for _, name := range files {
		version, err := goose.NumericComponent(path.Base(name))
		if err != nil {
			return nil, err
		}
		text, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}
		up := func(ctx context.Context, db *sql.DB) error { return l.exec(ctx, db, string(text)) }
		all = append(all, goose.NewGoMigration(version, &goose.GoFunc{RunDB: up}, nil))
	}
	return all, nil
}

// exec runs the statements of a text.
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

// statements fills a template in and returns its statements, which are those that end a line with a semicolon.
func (l layout) statements(text string) (all []string, err error) {
	t, err := template.New("").Parse(text)
	if err != nil {
		return nil, err
	}
	var filled strings.Builder
	if err := t.Execute(&filled, l); err != nil {
		return nil, err
	}
	for statement := range strings.SplitSeq(filled.String(), ";\n") {
		if statement = strings.TrimSpace(statement); statement != "" {
			all = append(all, statement)
		}
	}
	return all, nil
}
