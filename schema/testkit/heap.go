package testkit

import "runtime"

// Heap returns the bytes of the objects in use, after a garbage collection.
func Heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
