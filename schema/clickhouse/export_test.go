package clickhouse

import (
	"context"
	"database/sql"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/pressly/goose/v3"

	"linkstream/schema"
)

// Queries are those whose plans are tested.
var Queries = map[string]string{
	"stats": linkStats, "counts": clickCounts, "position": position, "marks": laneMarks,
	"link report": linkReport, "account report": accountReport,
}

// LookingUp returns the settings of a query that reads a few rows of a projection.
var LookingUp = lookingUp

// Statements returns all statements that make the schema of a cluster, or "" for one server.
func Statements(cluster string) (all []string, err error) {
	to := layout{Database: "default", Cluster: cluster}
	texts := []string{createLock, dropLock}
	if cluster != "" {
		texts = append(texts, versionTable)
	}
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := migrations.ReadFile("migrations/" + f.Name())
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		statements, err := to.statements(text)
		if err != nil {
			return nil, err
		}
		all = append(all, statements...)
	}
	return all, nil
}

// MigrateTo brings an empty database to a version of the schema, 0 being none.
func MigrateTo(ctx context.Context, db *sql.DB, version int64) error {
	known, err := layout{}.migrations()
	if err != nil || version == 0 {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectClickHouse, db, nil, goose.WithGoMigrations(known[:version]...),
		goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// Lock takes the lock under which nodes migrate; a lock as old as stale is taken away from its holder.
func Lock(ctx context.Context, db *sql.DB, stale time.Duration) error {
	return tableLock{stale: stale}.Lock(ctx, db)
}

// ExpireAfter replaces insertWithin.
func (c *ClickStore) ExpireAfter(d time.Duration) { c.within = d }

// Kill ends the query with that ID, as is done with an insert that was given up.
func (c *ClickStore) Kill(ctx context.Context, id string, cause error) error {
	return c.kill(ctx, id, cause)
}

// FillColumns prepares a batch for sending, over and over in the same memory.
func FillColumns() func(*schema.ClickBatch) {
	c := &columns{names: map[string]any{}}
	return c.fill
}

// OnCluster returns a store that takes the tables of a cluster to be there.
func OnCluster(cfg Config) (*ClickStore, error) {
	options, err := cfg.options()
	if err != nil {
		return nil, err
	}
	conn, err := ch.Open(options)
	return &ClickStore{conn: conn, layout: layout{Database: options.Auth.Database, Cluster: cfg.Cluster}, within: insertWithin}, err
}
