package clickhouse

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/pressly/goose/v3"

	"linkstream/schema"
)

// Queries have their plans tested.
var Queries = map[string]string{
	"stats": linkStats, "counts": clickCounts, "position": lastPosition, "marks": laneMarks, "combinations": combinations,
	"owned counts": ownedCounts, "series": seriesOf(seriesBounds[:]), "lane counts": laneCounts, "totals": linkTotals +
		unionAll + accountTotals,
}

var seriesBounds = [...]time.Time{time.Unix(1700000100, 0), time.Unix(1700001000, 0)}

// LastRow is the last row of a partition's batches.
const LastRow = lastRow

// ReportPart is a query of a report.
type ReportPart struct {
	Query    string
	Args     []any
	Settings ch.Settings
}

// ReportParts returns the queries of a report, in order of their groups.
func ReportParts(q schema.ReportQuery) (all []ReportPart) {
	for _, part := range partsOf(q, nil) {
		all = append(all, ReportPart{part.query, part.args, part.settings})
	}
	return all
}

// RankedDays is the longest time in days whose names of links are not ranked by the server.
const RankedDays = rankedDays

// ScanReport reads a report in the last way that a cluster tries, JoinedReport in the way of one server.
func (c *ClickStore) ScanReport(ctx context.Context, q schema.ReportQuery) (schema.Report, error) {
	imported, err := c.readImported(ctx, q)
	if err != nil {
		return schema.Report{}, err
	}
	r, err := c.readParts(ctx, q, scansOf(q, imported.pinned())...)
	imported.addTo(r)
	return r.report(), err
}

func (c *ClickStore) JoinedReport(ctx context.Context, q schema.ReportQuery) (schema.Report, error) {
	imported, err := c.readImported(ctx, q)
	if err != nil {
		return schema.Report{}, err
	}
	r, err := c.readParts(ctx, q, joined(partsOf(q, imported.pinned())))
	if err == nil && !r.consistent() {
		err = schema.Errorf(schema.CodeInternal, "the totals of a table that does not change differ: %v", r.totals)
	}
	imported.addTo(r)
	return r.report(), err
}

// MonthOf returns the month of a time, such as 202611.
var MonthOf = monthOf

// Settings of queries that read a projection, or a few rows of one.
var (
	ProjectionSettings = projectionSettings
	LookupSettings     = lookupSettings
	TotalsSettings     = totalsSettings
)

// Statements returns all statements that create the schema on a cluster, or on one server if cluster is "".
func Statements(cluster string) (all []string, err error) {
	l := layout{Database: "default", Cluster: cluster}
	texts := []string{fmt.Sprintf(createLock, "migration_lock"), fmt.Sprintf(dropLock, "migration_lock")}
	if cluster != "" {
		texts = append(texts, versionTable)
	}
	files, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := migrationFiles.ReadFile("migrations/" + f.Name())
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		statements, err := l.statements(text)
		if err != nil {
			return nil, err
		}
		all = append(all, statements...)
	}
	return all, nil
}

// MigrateTo brings an empty database to a version of the schema. Version 0 leaves it empty.
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

// Lock takes the lock of migrations, also from a holder that has had it for longer than stale.
func Lock(ctx context.Context, db *sql.DB, stale time.Duration) error {
	return tableLock{name: "migration_lock", stale: stale}.Lock(ctx, db)
}

// ExpireAfter replaces insertWithin.
func (c *ClickStore) ExpireAfter(d time.Duration) { c.within = d }

// Kill kills the query with that ID, as a failed insert.
func (c *ClickStore) Kill(ctx context.Context, id string, cause error) error {
	return c.kill(ctx, id, cause)
}

// FillColumns returns a function that prepares a batch for sending, always in the same memory.
func FillColumns() func(*schema.ClickBatch) {
	c := new(columns)
	return func(b *schema.ClickBatch) { c.fill(b) }
}

// OnCluster returns a store of a cluster without creating its tables.
func OnCluster(cfg Config) (*ClickStore, error) {
	options, err := cfg.options()
	if err != nil {
		return nil, err
	}
	conn, err := ch.Open(options)
	return newStore(conn, options, layout{Database: options.Auth.Database, Cluster: cfg.Cluster}), err
}

// Hurry makes the compactor take the lock from others at once.
func (c *Compactor) Hurry() { c.stale = 0 }

// CompactAll compacts all months, also open ones. Nothing may be inserted during the call.
func (c *Compactor) CompactAll(ctx context.Context) ([]schema.CompactedMonth, error) {
	return c.locked(ctx, func(r *compaction) ([]schema.CompactedMonth, error) { return r.run(ctx, lateMonths-1) })
}

// InsertMonth returns the month for the rows of a batch of a time that is inserted at another time.
var InsertMonth = insertMonth

// LateMonths is added to the month of the insert in the month of a late batch.
const LateMonths = lateMonths

// EncodeNames returns an encoded column LowCardinality(String).
func EncodeNames(names []string) []byte {
	var d dictionary
	fillNames(&d, []string{"of", "a", "former", "batch"})
	fillNames(&d, names)
	return d.appendTo(nil)
}

// UntilSent returns the context of a batch, and a function to call when the batch is sent.
func UntilSent(parent context.Context) (context.Context, func() bool) {
	c := untilSent(parent)
	return c, c.sent
}
