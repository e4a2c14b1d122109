package clickhouse

import (
	"context"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// insertContext returns a context for an insert of a batch. It sets what is not the default on every server. The
// projections of a block are aggregated by one thread, for which splitting a large table of groups into 256 costs a
// tenth of the insert's CPU time.
func (c *ClickStore) insertContext(ctx context.Context, id, token string) context.Context {
	settings := ch.Settings{
		"async_insert": 0, "insert_deduplicate": 1, "insert_deduplication_token": token,
		"group_by_two_level_threshold": 0, "group_by_two_level_threshold_bytes": 0,
	}
	if c.layout.Cluster != "" {
		settings["distributed_foreground_insert"] = 1
		settings["insert_quorum"] = "auto"
		settings["insert_quorum_timeout"] = (insertTimeout / 2).Milliseconds()
		settings["load_balancing"] = "in_order"
	}
	return ch.Context(ctx, ch.WithQueryID(id), ch.WithSettings(settings), ch.WithColumnNamesAndTypes(insertColumns))
}

// readContext returns a context for queries that must see earlier inserts. It may change settings.
func (c *ClickStore) readContext(ctx context.Context, settings ch.Settings) context.Context {
	if c.layout.Cluster != "" {
		settings["load_balancing"] = "in_order"
	}
	return ch.Context(ctx, ch.WithSettings(settings))
}

// projectionSettings returns the settings of a query that reads a projection. A search for better plans costs more than
// reading few rows, and the older analyzer is faster. The projection is only preferred: in parts without it, rows are
// read.
func projectionSettings(projection string) ch.Settings {
	return ch.Settings{"optimize_use_implicit_projections": 0, preferredProjection: projection, "enable_analyzer": 0}
}

const preferredProjection = "preferred_optimize_projection_name"

// lookupSettings returns those of a query that reads so few rows of a projection that several threads would cost more.
func lookupSettings(projection string) ch.Settings {
	settings := projectionSettings(projection)
	settings["max_threads"] = 1
	return settings
}

// rowSettings returns those of a query that reads a few rows of the table.
func rowSettings() ch.Settings {
	settings := lookupSettings("")
	settings["optimize_use_projections"] = 0
	return settings
}

// forEachRow calls scan for each row and closes rows. Its first two arguments are the results of a query.
func forEachRow(rows driver.Rows, err error, scan func() error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(); err != nil {
			return err
		}
	}
	return rows.Err()
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
