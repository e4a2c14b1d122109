package edgeservice

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// An edge keeps hundreds of megabytes of cache and produces little garbage, so that Go's default, which reserves as much memory
// again, would do so for nothing. A share of what is in use is enough, unless that is so little that the collector would run
// all the time: each look-up of a link that is not cached allocates.
const (
	garbageShare = 10       // percent of what is in use
	minGarbage   = 32 << 20 // bytes
)

// BoundGarbage sets the garbage collector's target for a process that is only an edge. GOGC in the environment takes
// precedence.
func BoundGarbage() {
	if os.Getenv("GOGC") == "" {
		boundGarbage(0)
	}
}

// boundGarbage sets the target for what is in use now, unless it is set already, and again after each collection.
func boundGarbage(set int) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if percent := gcPercent(live[0].Value.Uint64()); percent != set {
		debug.SetGCPercent(percent)
		set = percent
	}
	runtime.AddCleanup(new(collected), boundGarbage, set)
}

// collected is garbage at once: its cleanup runs after the next collection. It holds a pointer, as small objects without one
// may share their memory with others that live.
type collected struct{ _ *collected }

// gcPercent returns the target for so many bytes in use.
func gcPercent(live uint64) int {
	const rarely = 1000 // percent, before anything is in use
	return int(min(max(garbageShare, 100*minGarbage/max(live, 1)), rarely))
}
