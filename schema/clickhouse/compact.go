package clickhouse

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"linkstream/schema"
)

const day = 24 * time.Hour

// minRetention keeps away from months that are open, or were until a moment ago.
const minRetention = (openDays + 20) * day

// Retention says how long clicks are kept as rows of their own.
type Retention struct {
	Raw time.Duration // 0: for ever
}

// DefaultRetention returns a retention that has the same month of the year before.
func DefaultRetention() Retention { return Retention{Raw: 400 * day} }

// RegisterFlags binds the retention to flags.
func (r *Retention) RegisterFlags(fs *flag.FlagSet) {
	fs.DurationVar(&r.Raw, "clickhouse.raw-retention", r.Raw,
		"`time` for which each click is kept as a row. Older months are compacted "+
			"to rows per link, day and dimension of the reports, which stay the same; 0: never")
}

// Validate returns every invalid setting.
func (r *Retention) Validate() error {
	if r.Raw != 0 && r.Raw < minRetention {
		return fmt.Errorf("-clickhouse.raw-retention: %v is neither 0 nor at least %v (%d days)", r.Raw, minRetention,
			minRetention/day)
	}
	return nil
}

const (
	compactTimeout = 6 * time.Hour      // of a run
	compactStale   = 2 * compactTimeout // the holder of an older lock must have died

	compactionLock  = "compaction_lock"
	compactionQuery = "linkstream-compaction-" // prefix of query IDs
	buildPrefix     = "clicks_compacted_"      // of tables in which months are compacted
)

const (
	builds    = `SELECT name FROM system.tables WHERE database = currentDatabase() AND startsWith(name, ?)`
	killBuild = `KILL QUERY WHERE startsWith(query_id, ?) AND current_database = currentDatabase() SYNC`
	// Late months are compacted by the time of the insert.
	dueMonths = `SELECT month FROM clicks WHERE (month < ? OR month >= ? AND month < ?) AND weight > 0 AND lane_clicks > 0
	GROUP BY month ORDER BY month`
)

var (
	buildTable = `CREATE TABLE %s AS clicks`
	// A month is replaced by hard links to the parts of the table, also to merged ones, and the old parts are removed at
	// once.
	syncMerges = `ALTER TABLE %s MODIFY SETTING min_rows_to_fsync_after_merge = 1, ` +
		`min_compressed_bytes_to_fsync_after_merge = 1`
	aggregates = `INSERT INTO %s (link_id, account_id, clicked_at, weight, lane_clicks, kafka_partition, month, ` +
		allNames + `)
	SELECT link_id, account_id, toDateTime64(toDate(clicked_at) AS day, 3, 'UTC'), sum(clicks.weight), 0, -1, ?,
		` + allNames + `
	FROM clicks WHERE month = ? AND clicks.weight > 0
	GROUP BY link_id, day, account_id, ` + allNames
	// The marks of a partition include the month's last position of it.
	marks = `INSERT INTO %s (link_id, weight, lane_clicks, kafka_partition, kafka_epoch, kafka_next, kafka_offset,
		incarnation, lane, seq, month)
	WITH max((kafka_next, kafka_offset)) AS last
	SELECT 0, 0, sum(clicks.lane_clicks), kafka_partition, kafka_epoch, last.1, last.2, incarnation, lane,
		max(clicks.seq), ?
	FROM clicks WHERE month = ? AND kafka_partition >= 0
	GROUP BY kafka_partition, kafka_epoch, incarnation, lane`
	// What must be the same in a month and its compacted form: the clicks with their dimensions, and each lane.
	checksum = `
	SELECT toString((
		SELECT (sum(weight), sum(weight * cityHash64(link_id, account_id, toDate(clicked_at), ` + allNames + `)))
		FROM %[1]s WHERE month = %[2]d AND weight > 0
	)) || toString((
		SELECT (count(), sum(n), sum(cityHash64(kafka_partition, kafka_epoch, incarnation, lane, last, mark, n))) FROM (
			SELECT kafka_partition, kafka_epoch, incarnation, lane, max((kafka_next, kafka_offset)) AS last, max(seq) AS mark,
				sum(lane_clicks) AS n
			FROM %[1]s WHERE month = %[2]d AND kafka_partition >= 0
			GROUP BY kafka_partition, kafka_epoch, incarnation, lane
		)
	))`
	// Before the month is replaced: a report that is refused too early does no harm.
	listMonth    = `INSERT INTO compacted_months (month, hours_since) SELECT toUInt32(?) AS month, ` + nextMonth
	nextMonth    = `addMonths(makeDate(intDiv(month % 1000000, 100), month % 100, 1), 1)`
	replaceMonth = `ALTER TABLE clicks REPLACE PARTITION %d FROM %s`
)

// Compactor replaces the rows of old months by fewer ones that give the same results.
type Compactor struct {
	store     *ClickStore
	retention Retention
	stale     time.Duration // compactStale, or less in tests
}

// NewCompactor returns a compactor. On a cluster it does nothing: there, replacing a month has not been tried.
func NewCompactor(store *ClickStore, retention Retention, log *slog.Logger) *Compactor {
	if store.layout.Cluster != "" && retention.Raw > 0 {
		log.Warn("old clicks are not compacted: that is not supported on a cluster", "cluster", store.layout.Cluster)
	}
	return &Compactor{store, retention, compactStale}
}

// Compact compacts the months that are older than the retention, and returns those that it has compacted, also with an
// error. It does nothing while another process does so. It may be killed at any time: a month is replaced as a whole,
// and the next run removes what is left over.
func (c *Compactor) Compact(ctx context.Context) ([]schema.CompactedMonth, error) {
	if c.store.layout.Cluster != "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, compactTimeout)
	defer cancel()
	done, err := c.locked(ctx, func(r *compaction) ([]schema.CompactedMonth, error) {
		before, err := r.oldest(ctx, c.retention.Raw)
		if err != nil {
			return nil, err
		}
		return r.run(ctx, before)
	})
	return done, wrap(err, "compact clicks")
}

// locked calls do while this process has the lock of compactions.
func (c *Compactor) locked(
	ctx context.Context, do func(*compaction) ([]schema.CompactedMonth, error),
) (done []schema.CompactedMonth, err error) {
	options := *c.store.options
	options.ReadTimeout = compactTimeout // over HTTP, a statement is answered when it ends
	db := ch.OpenDB(&options)
	defer func() { err = errors.Join(err, db.Close()) }()
	lock := tableLock{c.store.layout, compactionLock, c.stale}
	if locked, err := lock.tryLock(ctx, db); !locked || err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock(context.WithoutCancel(ctx), db)) }()
	return do(&compaction{db})
}

// compaction is a run of a Compactor.
type compaction struct{ db *sql.DB }

// oldest returns the first month that has clicks within the retention. If the clocks of this machine and of the server
// differ, it believes the one that is behind.
func (r *compaction) oldest(ctx context.Context, retention time.Duration) (month uint32, err error) {
	if retention == 0 {
		return 0, nil
	}
	var now time.Time
	if err := r.db.QueryRowContext(ctx, "SELECT now('UTC')").Scan(&now); err != nil {
		return 0, err
	}
	if here := time.Now(); here.Before(now) {
		now = here
	}
	return monthOf(now.Add(-retention)), nil
}

// run compacts the months before one.
func (r *compaction) run(ctx context.Context, before uint32) (done []schema.CompactedMonth, err error) {
	if err := r.removeBuilds(ctx); err != nil {
		return nil, fmt.Errorf("remove what earlier runs left over: %w", err)
	}
	months, err := scanAll[uint32](r.db.QueryContext(ctx, dueMonths, before, lateMonths, lateMonths+before))
	if err != nil {
		return nil, fmt.Errorf("find months to compact: %w", err)
	}
	for _, month := range months {
		compacted, err := r.compact(ctx, month)
		if err != nil {
			return done, fmt.Errorf("compact month %d: %w", month, err)
		}
		done = append(done, compacted)
	}
	return done, nil
}

// removeBuilds removes the tables of runs that did not end, and ends what the server still does for them.
func (r *compaction) removeBuilds(ctx context.Context) error {
	names, err := scanAll[string](r.db.QueryContext(ctx, builds, buildPrefix))
	if err != nil || len(names) == 0 {
		return err
	}
	if _, err := r.db.ExecContext(ctx, killBuild, compactionQuery); err != nil {
		return err
	}
	for _, name := range names {
		if err := r.drop(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// compact replaces a month by its compacted form. Nothing is inserted into the month meanwhile, because it is closed.
// If something is nevertheless, the comparison fails.
func (r *compaction) compact(ctx context.Context, month uint32) (done schema.CompactedMonth, err error) {
	done.Month = month
	build := fmt.Sprintf("%s%d_%s", buildPrefix, month, strings.ToLower(rand.Text()))
	for _, statement := range []string{buildTable, syncMerges} {
		if err := r.exec(ctx, fmt.Sprintf(statement, build)); err != nil {
			return done, err
		}
	}
	for _, statement := range []string{aggregates, marks} {
		if err := r.exec(ctx, fmt.Sprintf(statement, build), month, month); err != nil {
			return done, err
		}
	}
	for table, rows := range map[string]*uint64{"clicks": &done.RowsBefore, build: &done.RowsAfter} {
		if err := r.db.QueryRowContext(ctx, "SELECT count() FROM "+table+" WHERE month = ?", month).Scan(rows); err != nil {
			return done, err
		}
	}
	if err := r.compare(ctx, month, build); err != nil {
		return done, err
	}
	for _, statement := range []string{keepVisitors, listMonth} {
		if err := r.exec(ctx, statement, month); err != nil {
			return done, err
		}
	}
	if err := r.exec(ctx, fmt.Sprintf(replaceMonth, month, build)); err != nil {
		return done, err
	}
	return done, r.drop(ctx, build)
}

// compare returns an error unless the table has the month of clicks in compacted form.
func (r *compaction) compare(ctx context.Context, month uint32, build string) error {
	var sums [2]string
	for i, table := range []string{build, "clicks"} { // the month last, when the table is complete
		ctx := r.context(ctx)
		if err := r.db.QueryRowContext(ctx, fmt.Sprintf(checksum, table, month)).Scan(&sums[i]); err != nil {
			return err
		}
	}
	if sums[0] != sums[1] {
		return schema.Errorf(schema.CodeInternal, "its compacted form has %s, the month itself %s: it stays as it is",
			sums[0], sums[1])
	}
	return nil
}

func (r *compaction) drop(ctx context.Context, build string) error {
	return r.exec(ctx, "DROP TABLE IF EXISTS "+build)
}

func (r *compaction) exec(ctx context.Context, statement string, args ...any) error {
	_, err := r.db.ExecContext(r.context(ctx), statement, args...)
	return err
}

// context returns a context for a statement of a compaction. It may read a month as long as it takes, but with few
// threads and bounded memory.
func (r *compaction) context(ctx context.Context) context.Context {
	return ch.Context(ctx, ch.WithQueryID(compactionQuery+rand.Text()), ch.WithSettings(ch.Settings{
		"max_execution_time": int(compactTimeout.Seconds()), "max_threads": 2, "max_insert_threads": 1,
		// In the order of the rows, which would need less memory, aggregation takes a hundred times longer for links with few
		// clicks per day. Sums that do not fit in memory go to the server's disk.
		"optimize_aggregation_in_order": 0, "max_bytes_before_external_group_by": 1 << 30,
		"optimize_use_projections": 0, "async_insert": 0, "insert_deduplicate": 0,
		"max_partition_size_to_drop": 0, "max_table_size_to_drop": 0, // 50 GB by default
	}))
}

// scanAll returns the one column of a query. Its arguments are the results of the query.
func scanAll[T any](rows *sql.Rows, err error) (all []T, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var value T
		if err := rows.Scan(&value); err != nil {
			return nil, err
		}
		all = append(all, value)
	}
	return all, rows.Err()
}
