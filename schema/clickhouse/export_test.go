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
	"stats": linkStats, "counts": clickCounts, "position": position, "mark": laneMark, "last click": lastClick, "last lane": lastLane,
	"link report": fmt.Sprintf(linkReport, linkParts), "account report": accountReport,
	"days of a link": linkDays, "places of a link": linkPlaces, "referrers of a link": linkReferrers,
	"days of an account": accountDays, "links of an account": accountLinks, "referrers": referrers,
	"lane counts": laneCounts,
}

// WholeReport returns the query of a report on one server, and its settings.
func WholeReport(q schema.ReportQuery) (query string, args []any, settings ch.Settings) {
	text := wholeReport(q, layout{})
	return text.query, text.args, reportSettings(q)
}

// QuickPart is a query of a quick report. Projection is "" if it reads rows.
type QuickPart struct {
	Projection, Query string
	Settings          ch.Settings
}

// QuickParts returns the queries of a quick report; none if the report is not quick.
func QuickParts(q schema.ReportQuery) (all []QuickPart) {
	if isQuick(q) {
		for _, part := range newQuickReport(q).parts() {
			all = append(all, QuickPart{part.projection, part.query, part.settings()})
		}
	}
	return all
}

// ScanReport reads a report in the last way that a cluster tries, JoinedReport in that of one server.
func (c *ClickStore) ScanReport(ctx context.Context, q schema.ReportQuery) (schema.Report, error) {
	return c.checkedReport(ctx, q, reportScan(q, c.layout))
}

func (c *ClickStore) JoinedReport(ctx context.Context, q schema.ReportQuery) (schema.Report, error) {
	return c.checkedReport(ctx, q, wholeReport(q, c.layout))
}

func (c *ClickStore) checkedReport(ctx context.Context, q schema.ReportQuery, text reportText) (schema.Report, error) {
	r, err := c.readReport(ctx, q, text)
	if err == nil && !r.consistent() {
		err = schema.Errorf(schema.CodeInternal, "the totals of a table that does not change differ: %v", r.totals)
	}
	return r.report, err
}

// ScanLinkReport and JoinedLinkReport do so for a link's report.
func (c *ClickStore) ScanLinkReport(ctx context.Context, link int64, since time.Time) (schema.LinkReport, error) {
	return c.checkedLinkReport(ctx, linkScan, link, dateOf(since), schema.TopNames)
}

func (c *ClickStore) JoinedLinkReport(ctx context.Context, link int64, since time.Time) (schema.LinkReport, error) {
	day := dateOf(since)
	return c.checkedLinkReport(ctx, linkParts, link, day, link, day, link, day, schema.TopNames)
}

func (c *ClickStore) checkedLinkReport(ctx context.Context, parts string, args ...any) (schema.LinkReport, error) {
	report, consistent, err := c.joinedLinkReport(ctx, parts, args...)
	if err == nil && !consistent {
		err = schema.Errorf(schema.CodeInternal, "the totals of one part differ")
	}
	return report, err
}

// JoinedAccountReport reads an account's report by one query.
func (c *ClickStore) JoinedAccountReport(ctx context.Context, account int64, since, linksSince time.Time) (schema.AccountReport, error) {
	return c.joinedAccountReport(ctx, account, dateOf(since), dateOf(linksSince))
}

// Retire drops the projections that only earlier releases read.
var Retire = retire

// MonthOf returns the month of a time, such as 202611.
var MonthOf = monthOf

// Settings of queries that read a projection, or a few rows of one.
var (
	ProjectionSettings = projectionSettings
	LookupSettings     = lookupSettings
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
	return func(b *schema.ClickBatch) { c.fill(b, b.Referrer) }
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

// Hurry makes the compactor take the lock from others at once, and compact right after the schema's upgrade.
func (c *Compactor) Hurry() { c.stale, c.grace = 0, 0 }

// CompactAll compacts all months, also those that are open. Nothing may be inserted meanwhile.
func (c *Compactor) CompactAll(ctx context.Context) ([]schema.CompactedMonth, error) {
	return c.locked(ctx, func(r *compaction) ([]schema.CompactedMonth, error) { return r.run(ctx, lateMonths-1, 0) })
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
