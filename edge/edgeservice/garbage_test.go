package edgeservice_test

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"linkstream/edge/edgeservice"
	"linkstream/schema/testkit"
)

func TestBoundGarbage(t *testing.T) {
	t.Run("is a tenth of the live heap, and 32 MiB at least", func(t *testing.T) {
		for live, want := range map[uint64]int{0: 1000, 4 << 20: 800, 64 << 20: 50, 320 << 20: 10, 1 << 30: 10} {
			testkit.Equal(t, "percent", edgeservice.GCPercent(live), want)
		}
	})
	t.Run("elsewhere, the collector is off while links are restored", func(t *testing.T) {
		percent := func() int {
			now := debug.SetGCPercent(100)
			debug.SetGCPercent(now)
			return now
		}
		edgeservice.Unbounded(func() {
			one, other := edgeservice.StopCollecting(), edgeservice.StopCollecting()
			testkit.Equal(t, "percent", percent(), -1)
			one()
			testkit.Equal(t, "percent while another edge restores", percent(), -1)
			other()
			testkit.Equal(t, "percent afterwards", percent(), 100)
		})
	})
	t.Run("follows the live heap", func(t *testing.T) {
		if os.Getenv("GOGC") != "" {
			t.Fatal("GOGC is set")
		}
		defer debug.SetGCPercent(debug.SetGCPercent(100))
		edgeservice.BoundGarbage()
		percent := func() int {
			runtime.GC()
			now := debug.SetGCPercent(100)
			debug.SetGCPercent(now)
			return now
		}
		testkit.Eventually(t, "the target is high", func() bool { return percent() > 100 })
		inUse := make([]byte, 400<<20)
		testkit.Eventually(t, "the target is low", func() bool { return percent() == 10 })
		restored := edgeservice.StopCollecting()
		testkit.Eventually(t, "the collector is off while links are restored", func() bool { return percent() == -1 })
		restored()
		testkit.Eventually(t, "the target is low again", func() bool { return percent() == 10 })
		runtime.KeepAlive(inUse)
		inUse = nil
		testkit.Eventually(t, "the target is high again", func() bool { return percent() > 100 })
	})
}
