package testkit

import "testing"

// raceDetector is true in binaries that have it.
var raceDetector bool

// NeedsPools skips a test under the race detector, where a sync.Pool drops elements at random: it then allocates again, and ristretto
// loses the requests that it collects in one. The Makefile names the packages of such tests and runs them without the detector. A build
// constraint would hide them from vet, which reads what is compiled with it.
func NeedsPools(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("pools forget under the race detector: run without -race")
	}
}
