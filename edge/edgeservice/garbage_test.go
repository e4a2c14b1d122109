package edgeservice_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"linkstream/edge/edgeservice"
	"linkstream/schema/testkit"
)

// onlyEdge is the variable that makes this test binary a program that is only an edge: it bounds its garbage.
const onlyEdge = "LINKSTREAM_TEST_ONLY_EDGE"

// restoreHandler calls restored when an edge has restored its cache, and goes on then.
type restoreHandler struct{ restored func() }

func (restoreHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h restoreHandler) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h restoreHandler) WithGroup(string) slog.Handler          { return h }

func (h restoreHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "cached links restored" {
		h.restored()
	}
	return nil
}

// percent returns the target of the garbage collector.
func percent() int {
	now := debug.SetGCPercent(100)
	debug.SetGCPercent(now)
	return now
}

// cached returns a stopped edge that has a link in its snapshot.
func cached(t *testing.T) *edge {
	t.Helper()
	e := start(t, func(cfg *edgeservice.Config) { cfg.Snapshot = true })
	testkit.Must(t, e.DropPending(t.Context())) // the change that made the link, before the link is cached
	e.awaitFollowing(t)
	e.want(t, "/abc", 302)
	testkit.Must(t, e.stop())
	return e
}

func TestBoundGarbage(t *testing.T) {
	if os.Getenv("GOGC") != "" {
		t.Fatal("GOGC is set")
	}
	if os.Getenv(onlyEdge) != "" {
		testOnlyEdge(t)
		return
	}
	t.Run("elsewhere, the collector is off while links are restored", func(t *testing.T) {
		one, other := cached(t), cached(t)
		testkit.Equal(t, "percent before", percent(), 100)
		restoring, finish, finished := make(chan struct{}), make(chan struct{}), make(chan struct{})
		one.log = restoreHandler{func() { close(restoring); <-finish }}
		go func() { defer close(finished); one.restart(t) }()
		<-restoring
		testkit.Equal(t, "percent", percent(), -1)
		other.restart(t)
		testkit.Equal(t, "percent while another edge restores", percent(), -1)
		close(finish)
		<-finished
		testkit.Equal(t, "percent afterwards", percent(), 100)
	})
	t.Run("in a program that is only an edge, follows the live heap", func(t *testing.T) {
		alone := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBoundGarbage$")
		alone.Env = append(os.Environ(), onlyEdge+"=1")
		if out, err := alone.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
	})
}

// testOnlyEdge requires that garbage is bounded to a tenth of the live heap, and 32 MiB at least.
func testOnlyEdge(t *testing.T) {
	e := cached(t)
	edgeservice.BoundGarbage()
	follows := func(what string) {
		t.Helper()
		testkit.Succeeds(t, func() error {
			runtime.GC()
			live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
			metrics.Read(live)
			want := min(max(10, 100*(32<<20)/live[0].Value.Uint64()), 1000)
			return testkit.Mismatch("percent "+what, percent(), int(want))
		})
	}
	follows("of a small heap")
	for _, size := range []int{64 << 20, 400 << 20} {
		inUse := make([]byte, size)
		follows("of a large heap")
		runtime.KeepAlive(inUse)
	}
	inUse, restoring := make([]byte, 400<<20), 0
	e.log = restoreHandler{func() { restoring = percent() }}
	e.restart(t)
	testkit.Equal(t, "percent while links are restored", restoring, -1)
	testkit.Equal(t, "percent afterwards", percent(), 10)
	runtime.KeepAlive(inUse)
	inUse = nil
	follows("of a small heap again")
}
