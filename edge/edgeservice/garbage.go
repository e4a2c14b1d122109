package edgeservice

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// An edge keeps hundreds of megabytes of cache and produces little garbage. Go's default would reserve as much memory
// again for no use. A share of the live heap is enough, unless the heap is so small that the collector would run all
// the time: each look-up of a link that is not cached allocates.
const (
	garbageShare = 10       // percent of the live heap
	minGarbage   = 32 << 20 // bytes
)

const percentByDefault = 100

var (
	bounds    atomic.Bool  // BoundGarbage was called
	restoring atomic.Int64 // edges of the process that restore their cache
)

// BoundGarbage sets the garbage collector's target for a process that is only an edge, unless GOGC is set in the
// environment.
func BoundGarbage() {
	if os.Getenv("GOGC") == "" {
		bounds.Store(true)
		boundGarbage(0)
	}
}

// boundGarbage sets the target for the live heap, unless it is set already, and again after each collection.
func boundGarbage(set int) { runtime.AddCleanup(new(collected), boundGarbage, boundNow(set)) }

// boundNow sets the target for the live heap, unless it is set already, and returns it. It returns 0 while the
// collector is off.
func boundNow(set int) int {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	percent := gcPercent(live[0].Value.Uint64())
	if restoring.Load() > 0 {
		return 0
	}
	if percent != set {
		debug.SetGCPercent(percent)
	}
	return percent
}

// stopCollecting turns the garbage collector off until end is called, once (GOMEMLIMIT still applies). While an edge
// restores its cache, the heap only grows, and collecting would take longer than restoring. A restored link makes about
// 100 bytes of garbage.
func stopCollecting() (end func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	restoring.Add(1)
	debug.SetGCPercent(-1)
	return func() {
		switch {
		case restoring.Add(-1) > 0:
		case bounds.Load():
			boundNow(0)
		default:
			debug.SetGCPercent(percentByDefault)
		}
	}
}

// collected is garbage at once: its cleanup runs after the next collection. It holds a pointer, because small objects
// without one may share their memory with live ones.
type collected struct{ _ *collected }

// gcPercent returns the target for a live heap of so many bytes.
func gcPercent(live uint64) int {
	const rarely = 1000 // percent, for an empty heap
	return int(min(max(garbageShare, 100*minGarbage/max(live, 1)), rarely))
}
