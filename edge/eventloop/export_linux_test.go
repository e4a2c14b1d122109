package eventloop

import "time"

// The number of windows of a trial, the first ones included, and of those before it.
const (
	Window   = window
	Baseline = baseline
	Trial    = settling + trial
	RetryMin = retryMin
	Crowded  = crowded
)

// Crowd is a crowd for tests.
type Crowd struct{ crowd }

// Judge returns by how many the number of loops changes.
func (c *Crowd) Judge(now time.Duration, loops, most int, full bool, rate, waited float64) int {
	return map[verdict]int{oneMore: 1, oneLess: -1}[c.judge(now, loops, most, work{full: full, rate: rate, waited: waited})]
}

// RunDelay parses a thread's schedstat.
var RunDelay = parseRunDelay
