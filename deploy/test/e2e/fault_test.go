package e2e_test

import (
	"testing"
	"time"
)

// TestFaults makes engines and programs under load fail as they do in production. Each redirect that was answered must be
// counted exactly once. A visit that a kill interrupted may be counted or not. Only what the programs say to be lost may be.
//
// The faults of a group share a system and its engines, which take longer to start than most faults. testFaultSequence has most of
// them; the other groups have those that need looking at while they last, or a quiet system.
func TestFaults(t *testing.T) {
	t.Parallel()
	t.Run("all faults in random order", func(t *testing.T) { // the longest test first
		t.Parallel()
		testFaultSequence(t)
	})
	t.Run("faults of programs", func(t *testing.T) {
		t.Parallel()
		testProgramFaults(t)
	})
	t.Run("faults of engines", func(t *testing.T) {
		t.Parallel()
		testEngineFaults(t)
	})
	t.Run("faults of embedded engines", func(t *testing.T) {
		t.Parallel()
		testEmbeddedFaults(t)
	})
}

// fault is a way in which engines or programs fail under load.
type fault struct {
	name  string
	cause func()
}

// causeEach causes one fault after the other, each with new visitors, and compares what is counted after each.
func (c *loadedCluster) causeEach(t *testing.T, faults ...fault) {
	t.Helper()
	for _, f := range faults {
		c.startVisitors()
		c.cause(t, f)
		c.settle(t)
		if t.Failed() {
			t.Fatalf("after: %s", f.name)
		}
	}
}

func (c *loadedCluster) cause(t *testing.T, f fault) {
	t.Helper()
	begin := time.Now()
	t.Logf("%s …", f.name) // shown when the test fails in it
	f.cause()
	t.Logf("%s: %v", f.name, time.Since(begin).Round(time.Millisecond))
}
