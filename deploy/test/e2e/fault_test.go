//go:build engines && nightly

package e2e_test

import "testing"

// TestFaults makes engines and programs under load fail as they do in production. Each redirect that was answered
// must be counted exactly once. A visit that a kill interrupted may be counted or not. Only what the programs say to
// be lost may be.
//
// The faults of a group share a system and its engines, which take longer to start than most faults.
// testFaultSequence has most of them; the other groups have those that need looking at while they last, or a quiet
// system.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T){"all in random order": testFaultSequence, "of programs": testProgramFaults,
		"of embedded engines": testEmbeddedFaults} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}
