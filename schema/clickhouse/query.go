package clickhouse

import (
	"context"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// inserting returns a context for an insert of a batch. What is set here is the default of some server at least.
func (c *ClickStore) inserting(ctx context.Context, id, token string) context.Context {
	settings := ch.Settings{"async_insert": 0, "insert_deduplicate": 1, "insert_deduplication_token": token}
	if c.layout.Cluster != "" {
		settings["distributed_foreground_insert"] = 1
		settings["insert_quorum"] = "auto"
		settings["insert_quorum_timeout"] = (insertTimeout / 2).Milliseconds()
		settings["load_balancing"] = "in_order"
	}
	return ch.Context(ctx, ch.WithQueryID(id), ch.WithSettings(settings), ch.WithColumnNamesAndTypes(sent))
}

// reading returns a context for queries that follow inserts.
func (c *ClickStore) reading(ctx context.Context) context.Context {
	if c.layout.Cluster == "" {
		return ctx
	}
	return ch.Context(ctx, ch.WithSettings(ch.Settings{"load_balancing": "in_order"}))
}

// lookingUp returns the settings of a query that reads a few rows of the projection: to spread it over threads, and to
// look for other ways to answer it, takes longer than the reading, and half of what there is for others. The projection
// is the first to be tried, no more: the rows of a part that does not have it are read. The older analyzer is quicker.
func lookingUp(projection string) ch.Settings {
	return ch.Settings{
		"max_threads": 1, "optimize_use_implicit_projections": 0, "preferred_optimize_projection_name": projection,
		"enable_analyzer": 0,
	}
}

// each takes the outcome of a query, calls scan for each row, and closes the rows.
func each(rows driver.Rows, err error, scan func() error) error {
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
