package edgeservice

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// An edge keeps hundreds of megabytes of cache and produces little garbage, so that Go's default, which reserves as much memory
// again, would do so for nothing. A share of what is in use is enough, unless that is so little that the collector would run
// all the time: each look-up of a link that is not cached allocates.
const (
	garbageShare = 10       // percent of what is in use
	minGarbage   = 32 << 20 // bytes
)

// While an edge restores its cache, what is in use only grows. With the bounds above the collector would run thirty times for a
// million links, and take longer than to restore them. A restored link makes about 200 bytes of garbage.
const (
	restoreGarbage   = 128 << 20 // bytes, where BoundGarbage was called
	restorePercent   = 400       // elsewhere
	percentByDefault = 100
)

var (
	bounds    atomic.Bool  // BoundGarbage was called
	restoring atomic.Int64 // edges of the process that restore their cache
)

// BoundGarbage sets the garbage collector's target for a process that is only an edge. GOGC in the environment takes
// precedence.
func BoundGarbage() {
	if os.Getenv("GOGC") == "" {
		bounds.Store(true)
		boundGarbage(0)
	}
}

// boundGarbage sets the target for what is in use now, unless it is set already, and again after each collection.
func boundGarbage(set int) { runtime.AddCleanup(new(collected), boundGarbage, boundNow(set)) }

// boundNow sets the target for what is in use now, unless it is set already, and returns it.
func boundNow(set int) int {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	least := uint64(minGarbage)
	if restoring.Load() > 0 {
		least = restoreGarbage
	}
	percent := gcPercent(live[0].Value.Uint64(), least)
	if percent != set {
		debug.SetGCPercent(percent)
	}
	return percent
}

// relaxGarbage has the collector run rarely until end is called, once.
func relaxGarbage() (end func()) {
	switch {
	case os.Getenv("GOGC") != "":
		return func() {}
	case bounds.Load():
		restoring.Add(1)
		return func() {
			restoring.Add(-1)
			boundNow(0)
		}
	}
	if restoring.Add(1) == 1 {
		debug.SetGCPercent(restorePercent)
	}
	return func() {
		if restoring.Add(-1) == 0 {
			debug.SetGCPercent(percentByDefault)
		}
	}
}

// collected is garbage at once: its cleanup runs after the next collection. It holds a pointer, as small objects without one
// may share their memory with others that live.
type collected struct{ _ *collected }

// gcPercent returns the target for so many bytes in use, and at least so many bytes of garbage.
func gcPercent(live, least uint64) int {
	const rarely = 1000 // percent, before anything is in use
	return int(min(max(garbageShare, 100*least/max(live, 1)), rarely))
}
