package system

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	if err := r.awaitMerges(ctx, conn); err != nil {
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
	// Parts that share their files share them in the page cache as well, as parts of different clicks would not.
	exec("ALTER TABLE `%s`.clicks MODIFY SETTING always_use_copy_instead_of_hardlinks = 1", copies)
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

// awaitMerges waits until the server merges no more of the clicks.
func (r *realEngines) awaitMerges(ctx context.Context, conn ch.Conn) error {
	r.launcher.progress("waiting until the server merges no more")
	for idle := 0; idle < 5; {
		var merges uint64
		if err := conn.QueryRow(ctx, "SELECT count() FROM system.merges WHERE database = currentDatabase()").Scan(&merges); err != nil {
			return fmt.Errorf("count merges: %w", err)
		}
		if idle++; merges > 0 {
			idle = 0
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
