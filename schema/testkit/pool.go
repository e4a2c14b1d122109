package testkit

import "testing"

// NeedsPools skips a test under the race detector, where a sync.Pool drops elements at random: it then allocates again, and ristretto
// loses the requests that it collects in one. make test runs the packages of the edge once more without the detector.
func NeedsPools(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("NOT TESTED HERE: pools forget under the race detector; run without -race")
	}
}
