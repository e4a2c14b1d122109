package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// Copy writes a copy of the database in the file from, as it is at one moment, to the new file to. Processes may use the
// database meanwhile; none of them waits. The schema stays as it is, so a program may copy what another release uses. The
// caller syncs the copy. If Copy fails, it leaves no file.
func Copy(ctx context.Context, from, to string) error {
	err := withExisting(from, func(db *sql.DB) error {
		// One statement reads one snapshot, and leaves out pages that are not used.
		_, err := db.ExecContext(ctx, "VACUUM INTO ?", to)
		return err
	})
	if err != nil {
		err = errors.Join(err, removeIfExists(to), removeIfExists(to+"-journal"))
	}
	return wrap(err, "copy database %q", from)
}

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
		{clicks, "SELECT (SELECT coalesce(sum(total), 0) FROM settled_totals) + (SELECT coalesce(sum(total), 0) FROM recent)", &size.Clicks},
	} {
		err := withExisting(count.path, func(db *sql.DB) error { return db.QueryRowContext(ctx, count.query).Scan(count.to) })
		if err != nil {
			return Size{}, wrap(err, "read size of %q", count.path)
		}
	}
	return size, nil
}

// withExisting calls use with the database in an existing file, whose schema may be of any release.
func withExisting(path string, use func(*sql.DB) error) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	db, err := sql.Open("sqlite", dsn(path, url.Values{"mode": {"rw"}, "_busy_timeout": {busyTimeout}, "_dqs": {"0"}}))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	return errors.Join(use(db), db.Close())
}

func removeIfExists(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
