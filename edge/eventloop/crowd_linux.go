package eventloop

import "time"

// Loops that are busy all the time are not enough only if there is a CPU for one more. On a machine whose CPUs others need as
// well, such as a proxy in front of the edge, one loop more makes all of them wait for CPUs and find fewer events at each wake-up:
// they may serve less than before. A loop sees nothing of that but the result. So a loop that joins is on trial: it stays if
// all of them together serve more. As long as half of the CPUs are without a loop, none needs a trial.
const (
	baseline = 3               // windows in which the loops are busy before another one joins
	settling = 3               // windows after it has joined that do not count: connections move
	trial    = 8               // windows that count
	worth    = 0.05            // of a loop's equal share of the answers before, which one that joins has to add, or it leaves
	retryMin = 2 * time.Second // from a trial that failed to the next one; each further failure doubles it
	retryMax = 64 * time.Second
)

// crowd finds out how many loops serve most. It belongs to loop 0.
type crowd struct {
	loops   int           // that accept, as far as it knows
	windows int           // since their number changed or, without a trial, since they were not busy
	rate    float64       // answers per second in these windows
	before  float64       // answers per second before the last loop joined; 0 without a trial
	retry   time.Duration // pause after the last trial; 0 if it did not fail
	retryAt time.Duration // when the next trial may begin
}

// verdict says how the number of loops that accept changes.
type verdict int

const (
	asBefore verdict = iota
	oneMore
	oneLess
)

// judge is told how the loops that accept, of most, did in a window: whether they were full, which means busy all the time, and
// their answers per second.
func (c *crowd) judge(now time.Duration, loops, most int, full bool, rate float64) verdict {
	if loops != c.loops { // there was little to do, or a loop is stuck
		c.begin(loops, 0)
	}
	if c.before > 0 {
		return c.try(now, full, rate)
	}
	if !full {
		c.begin(loops, 0)
		return asBefore
	}
	if loops+1 <= most/2 {
		c.begin(loops+1, 0)
		return oneMore
	}
	c.windows++
	c.rate += (rate - c.rate) / float64(min(c.windows, baseline))
	if c.windows < baseline || now < c.retryAt || loops == most {
		return asBefore
	}
	c.begin(loops+1, c.rate)
	return oneMore
}

// try judges a loop on trial.
func (c *crowd) try(now time.Duration, full bool, rate float64) verdict {
	c.windows++
	n := c.windows - settling
	if n <= 0 {
		return asBefore
	}
	if c.rate += (rate - c.rate) / float64(n); full && n < trial {
		return asBefore
	}
	if !full || c.rate >= c.before*(1+worth/float64(c.loops-1)) { // where there is room, it does not matter
		c.begin(c.loops, 0)
		c.retry = 0
		return asBefore
	}
	c.begin(c.loops-1, 0)
	c.retry = min(max(2*c.retry, retryMin), retryMax)
	c.retryAt = now + c.retry
	return oneLess
}

func (c *crowd) begin(loops int, before float64) {
	c.loops, c.before, c.windows, c.rate = loops, before, 0, 0
}
