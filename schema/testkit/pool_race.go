//go:build race

package testkit

import "runtime/debug"

// With the race detector, collecting garbage takes an eighth of a test's CPU time. Test processes live briefly, so they collect it less
// often. Programs that tests start have their own setting.
func init() {
	raceDetector = true
	debug.SetGCPercent(400)
}
