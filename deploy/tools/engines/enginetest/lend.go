package enginetest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

// Lent are engines that one test uses at a time, with databases of its own. The test may stop and kill each of them.
type Lent struct {
	*testengines.All
	PostgresDatabase   string // URL
	ClickHouseDatabase string // URL, native protocol
}

// Lend returns engines that no other test uses until this test ends. A later test may get the same ones: to reuse
// engines takes less time than to start them. The environment is not used.
func (e *Engines) Lend(tb testing.TB) *Lent {
	tb.Helper()
	all, err := e.takeIdle()
	testkit.Must(tb, err)
	running := true
	tb.Cleanup(func() { // runs last: nothing uses the engines any more
		if running {
			e.putIdle(all)
		}
	})
	lent := &Lent{all, postgresDatabase(tb, all.Postgres.Addr), clickhouseDatabase(tb, all.ClickHouse.Addr)}
	tb.Cleanup(func() { // runs before the databases are dropped
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		for _, engine := range all.Engines() {
			if err := engine.Start(ctx); err != nil {
				running = false
				tb.Error(err)
			}
		}
	})
	return lent
}

// takeIdle returns engines that no test uses. It starts them if there are none.
func (e *Engines) takeIdle() (*testengines.All, error) {
	dir, err := e.folder()
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	if n := len(e.idle); n > 0 {
		all := e.idle[n-1]
		e.idle = e.idle[:n-1]
		e.mu.Unlock()
		return all, nil
	}
	e.sets++
	dir = filepath.Join(dir, fmt.Sprintf("set-%d", e.sets))
	e.mu.Unlock()
	// Without the test's context: the engines serve other tests, too.
	all, err := testengines.StartAll(context.Background(), dir, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started = append(e.started, all)
	return all, nil
}

func (e *Engines) putIdle(all *testengines.All) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, all)
}
