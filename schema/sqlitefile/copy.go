package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// Copy writes a copy of the database in the file from, as it is at one moment, to the new file to. Processes may use
// the database meanwhile; none of them waits. The schema stays as it is, so a program may copy what another release
// uses. The caller syncs the copy. If Copy fails, it leaves no file.
func Copy(ctx context.Context, from, to string) error {
	err := Existing(from, func(db *sql.DB) error {
		// One statement reads one snapshot, and leaves out pages that are not used.
		_, err := db.ExecContext(ctx, "VACUUM INTO ?", to)
		return err
	})
	if err != nil {
		err = errors.Join(err, removeIfExists(to), removeIfExists(to+"-journal"))
	}
	return Wrap(err, "copy database %q", from)
}

// Existing calls use with the database in an existing file, whose schema may be of any release.
func Existing(path string, use func(*sql.DB) error) error {
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
