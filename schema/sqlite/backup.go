package sqlite

import (
	"context"
	"database/sql"

	"linkstream/schema/sqlitefile"
)

// Size is what a link store and a click store hold.
type Size struct {
	Links  int64
	Clicks int64 // counted
}

// SizeOf returns what the stores in two files hold.
func SizeOf(ctx context.Context, links, clicks string) (size Size, err error) {
	for _, count := range []struct {
		path, query string
		to          *int64
	}{
		{links, "SELECT count(*) FROM links WHERE ordinal > 0", &size.Links},
		{clicks, "SELECT (SELECT coalesce(sum(total), 0) FROM settled_totals) + (SELECT coalesce(sum(total), 0) FROM recent)",
			&size.Clicks},
	} {
		err := sqlitefile.Existing(count.path, func(db *sql.DB) error {
			return db.QueryRowContext(ctx, count.query).Scan(count.to)
		})
		if err != nil {
			return Size{}, sqlitefile.Wrap(err, "read size of %q", count.path)
		}
	}
	return size, nil
}
