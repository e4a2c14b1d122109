package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

const unknownSetting = 115 // ClickHouse's code

// activeParts counts the parts of the clicks and of their copies. What a query of few rows costs grows with them.
const activeParts = `SELECT countIf(database = currentDatabase()), countIf(database = ?) FROM system.parts WHERE active AND table = 'clicks'`

// multiply starts an api on copies of the clicks that are stored.
func (r *realEngines) multiply(ctx context.Context, times int) (*Service, error) {
	merged, err := r.createClicks(ctx, "merged")
	if err != nil {
		return nil, err
	}
	copies, err := r.createClicks(ctx, "copies")
	if err != nil {
		return nil, err
	}
	if err := r.copyClicks(ctx, merged.name, copies.name, times); err != nil {
		return nil, err
	}
	// The copies are hard links, and would share the page cache, as parts of different clicks do not.
	if err := eachLinkFile(ctx, copies.dsn, unlinkFile); err != nil {
		return nil, fmt.Errorf("copy what queries of links read: %w", err)
	}
	name := fmt.Sprintf("clicks times %d", times)
	s, err := newService("services, "+name, true)
	if err != nil {
		return nil, err
	}
	return s, r.startAPI(ctx, s, "api, "+name, copies.dsn)
}

// copyClicks merges the clicks to one part per month in one of two new databases, and copies these parts to the other one. They are not
// merged there: that would add up their counts, and leave each projection with as few rows as one copy has.
func (r *realEngines) copyClicks(ctx context.Context, merged, copies string, times int) (err error) {
	conn, err := openClickHouse(r.clickhouse)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	r.launcher.progress("waiting until the server merges no more")
	if err := r.AwaitMerges(ctx); err != nil {
		return err
	}
	var months []uint32
	if err := conn.QueryRow(ctx, "SELECT arraySort(groupUniqArray(month)) FROM clicks").Scan(&months); err != nil {
		return fmt.Errorf("list months: %w", err)
	}
	// Each query reads the statistics of parts that a server has merged, until it caches those of a table, every few minutes. Servers
	// before 26 have none.
	err = conn.Exec(ctx, fmt.Sprintf("ALTER TABLE `%s`.clicks MODIFY SETTING auto_statistics_types = ''", merged))
	if old, ok := errors.AsType[*ch.Exception](err); ok && old.Code == unknownSetting {
		err = nil
	}
	exec := func(format string, args ...any) {
		if err == nil {
			err = conn.Exec(ctx, fmt.Sprintf(format, args...))
		}
	}
	exec("SYSTEM STOP MERGES `%s`.clicks", copies)
	for _, month := range months {
		r.launcher.progress("merging the clicks of %d, and copying them %d times", month, times)
		exec("ALTER TABLE `%s`.clicks ATTACH PARTITION %d FROM clicks", merged, month)
		exec("OPTIMIZE TABLE `%s`.clicks PARTITION %d FINAL", merged, month)
		for range times {
			exec("ALTER TABLE `%s`.clicks ATTACH PARTITION %d FROM `%s`.clicks", copies, month, merged)
		}
	}
	if err != nil {
		return err
	}
	var smaller, larger uint64
	if err := conn.QueryRow(ctx, activeParts, copies).Scan(&smaller, &larger); err != nil {
		return fmt.Errorf("count parts: %w", err)
	}
	r.launcher.progress("the clicks are in %d parts, the copies in %d", smaller, larger)
	return nil
}

// linkProjections finds what queries of links read of the clicks.
const linkProjections = `SELECT path FROM system.projection_parts WHERE active AND database = currentDatabase() AND table = 'clicks'
	AND name IN ('weighted_counts', 'link_quarters', 'link_referrers', 'link_places')`

// eachLinkFile calls do for each file that queries of links read. The server is on this machine.
func eachLinkFile(ctx context.Context, dsn string, do func(path string) error) (err error) {
	conn, err := openClickHouse(dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	var folders []struct {
		Path string `ch:"path"`
	}
	if err := conn.Select(ctx, &folders, linkProjections); err != nil {
		return fmt.Errorf("list projections: %w", err)
	}
	for _, folder := range folders {
		files, err := os.ReadDir(folder.Path)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := errors.Join(ctx.Err(), do(filepath.Join(folder.Path, file.Name()))); err != nil {
				return err
			}
		}
	}
	return nil
}

// readFile reads a file, so that it is in the page cache.
func readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(io.Discard, file)
	return err
}

// unlinkFile replaces a hard link by a file of its own.
func unlinkFile(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	own := path + ".own"
	return errors.Join(os.WriteFile(own, content, 0o644), os.Rename(own, path))
}
