package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"linkstream/deploy/standalone/backup"
	"linkstream/deploy/standalone/embedded"
	"linkstream/edge/spool"
	"linkstream/schema/filelock"
	linksqlite "linkstream/schema/linkstore/sqlite"
	"linkstream/schema/service"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitefile"
)

const backupUsage = `  backup DIR                 copy all data to DIR, which must be new or empty; the service may run
  restore DIR                put the data of a backup back; the service must not run
                             --replace: keep the data that is there aside
`

// BackupConfig holds the options of the commands backup and restore.
type BackupConfig struct {
	Replace bool
}

// RegisterFlags binds the options to flags.
func (c *BackupConfig) RegisterFlags(fs *flag.FlagSet) {
	fs.BoolVar(&c.Replace, "replace", c.Replace, "restore: move the data that is there to replaced-TIME in the data "+
		"directory")
}

// Validate always succeeds.
func (c *BackupConfig) Validate() error { return nil }

// isBackupCommand reports whether command is backup or restore.
func isBackupCommand(command []string) bool {
	return len(command) > 0 && (command[0] == "backup" || command[0] == "restore")
}

// runBackupCommand runs the command backup or restore and prints what it did.
func runBackupCommand(
	ctx context.Context, cfg Config, options BackupConfig, command []string, out io.Writer, log *slog.Logger,
) error {
	if len(command) != 2 {
		return fmt.Errorf("usage: %s DIR", command[0])
	}
	dir, err := outside(command[1], cfg.Data)
	if err != nil {
		return fmt.Errorf("%s: %w", command[0], err)
	}
	if command[0] == "backup" {
		return runBackup(ctx, cfg, dir, out)
	}
	return runRestore(ctx, cfg, options, dir, out, log)
}

// outside returns the absolute path of dir, which must not be in the data directory, nor the data directory in it.
func outside(dir, data string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real := []string{dir, data}
	for i, path := range real {
		if real[i], err = realPath(path); err != nil {
			return "", err
		}
	}
	for _, pair := range [][2]string{{real[0], real[1]}, {real[1], real[0]}} {
		if rel, err := filepath.Rel(pair[0], pair[1]); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return "", fmt.Errorf("%q and the data directory are in each other", dir)
		}
	}
	return dir, nil
}

// realPath returns an absolute path without symbolic links. The end of the path need not exist.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(path) != path {
		parent, err := realPath(filepath.Dir(path))
		return filepath.Join(parent, filepath.Base(path)), err
	}
	return real, err
}

func runBackup(ctx context.Context, cfg Config, dir string, out io.Writer) error {
	m, err := cfg.backup(ctx, dir, nil)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "backup of %s in %s: %d links, %d counted clicks and what waits to be counted, %d files, "+
		"%d bytes\n",
		m.Begun.Format(time.RFC3339), dir, m.Links, m.Clicks, len(m.Files), m.TotalSize())
	return err
}

// backup copies the data directory to dir. The service may run during the copy, or start, or end. If before is not nil,
// backup calls it with the name of each part before it copies the part.
//
// The order of the copies makes sure that each click is in one of them, and that they fit each other:
//
//  1. The spool. A click that is not in it any more is in the click store: the spool releases clicks that are counted,
//     on the disk.
//  2. The click store, later. So it has every click that the copy of the spool does not have because it was released.
//     Clicks that are in both are counted once: the lane's mark, copied in the same snapshot as the counts, is at or
//     above their numbers. A click that was recorded after its lane was copied is in the click store, or it belongs to
//     what comes after the backup: the next process begins lanes of its own, so no number is used twice.
//  3. The link store: each click in the other copies is on a link in this one. Otherwise new links would get the
//     numbers of links that have clicks already.
func (c *Config) backup(ctx context.Context, dir string, before func(part string)) (*backup.Manifest, error) {
	if err := c.target().Check(); err != nil {
		return nil, err
	}
	for _, path := range []string{c.dir().Links(), c.dir().Clicks()} {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%q is not the data directory of a service: %w", c.Data, err)
		}
	}
	lock, err := filelock.TryAcquire(c.dir().BackupLock()) // a restore replaces what is copied
	if err != nil {
		return nil, fmt.Errorf("another backup, a restore or a migrate-to runs: %w", err)
	}
	m, err := backup.Create(ctx, dir, func(dir string) (*backup.Manifest, error) {
		to := Config{Data: dir}
		m := &backup.Manifest{Program: service.Version(), Begun: time.Now().UTC()}
		for _, part := range []struct {
			name string
			copy func() error
		}{
			{"spool", func() error { return spool.Copy(c.dir().Spool(), to.dir().Spool()) }},
			{"clicks", func() error { return sqlitefile.Copy(ctx, c.dir().Clicks(), to.dir().Clicks()) }},
			{"links", func() error { return sqlitefile.Copy(ctx, c.dir().Links(), to.dir().Links()) }},
			{"size", func() error { return measure(ctx, to.dir().Links(), to.dir().Clicks(), m) }},
		} {
			if before != nil {
				before(part.name)
			}
			if err := errors.Join(ctx.Err(), part.copy()); err != nil {
				return nil, err
			}
		}
		return m, nil
	})
	return m, errors.Join(err, lock.Release())
}

// measure completes the manifest when everything is copied.
func measure(ctx context.Context, links, clicks string, m *backup.Manifest) error {
	var err error
	m.Links, m.Clicks, err = sizeOf(ctx, links, clicks)
	m.Ended = time.Now().UTC()
	return err
}

// sizeOf returns how many links and counted clicks two files have.
func sizeOf(ctx context.Context, linksPath, clicksPath string) (links, clicks int64, err error) {
	if links, err = linksqlite.CountLinks(ctx, linksPath); err != nil {
		return 0, 0, err
	}
	clicks, err = sqlite.CountOf(ctx, clicksPath)
	return links, clicks, err
}

func runRestore(
	ctx context.Context, cfg Config, options BackupConfig, dir string, out io.Writer, log *slog.Logger,
) (err error) {
	for _, path := range []string{cfg.dir().Lock(), cfg.dir().BackupLock()} {
		lock, err := filelock.TryAcquire(path)
		if err != nil {
			return fmt.Errorf("restore: a service or a backup uses the data directory: %w", err)
		}
		defer lock.Release()
	}
	m, err := backup.ReadManifest(dir)
	if err != nil {
		return err
	}
	for _, name := range []string{embedded.LinksName, embedded.ClicksName} {
		if !m.Has(name) {
			return fmt.Errorf("%q is not a backup of a data directory: it has no %s", dir, name)
		}
	}
	m, replaced, err := cfg.target().Restore(ctx, dir, options.Replace)
	if errors.Is(err, backup.ErrNotEmpty) {
		return fmt.Errorf("%w: with --replace it is kept aside", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "restored the backup of %s: %d links, %d counted clicks; the next start counts what waited to be "+
		"counted\n",
		m.Begun.Format(time.RFC3339), m.Links, m.Clicks)
	fmt.Fprintf(out, "lost: links and clicks after %s\n", m.Ended.Format(time.RFC3339))
	if replaced == "" {
		return nil
	}
	old := Config{Data: replaced}
	links, clicks, err := sizeOf(ctx, old.dir().Links(), old.dir().Clicks())
	if err != nil {
		log.Warn("cannot read the replaced data", "path", replaced, "error", err)
		fmt.Fprintf(out, "replaced: %s, which cannot be read\n", replaced)
		return nil
	}
	fmt.Fprintf(out, "replaced: %s with %d links, %d counted clicks\n", replaced, links, clicks)
	return nil
}

// target returns the data directory for a restore.
func (c *Config) target() *backup.Target {
	return &backup.Target{Dir: c.Data, Keep: []string{embedded.LockName, embedded.BackupLockName}}
}
