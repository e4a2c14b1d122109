package eventloop

import "time"

// Loops that are busy all the time are not enough only if there is a CPU for one more. On a machine whose CPUs others need as
// well, such as a proxy in front of the edge, one loop more makes all of them wait for CPUs and find fewer events at each wake-up:
// they may serve less than before. A loop sees nothing of that but the result. So a loop that joins is on trial: it stays if
// all of them together serve more, or if they get CPUs as quickly as before and are not busy any more. As long as half of the CPUs are
// without a loop, none needs a trial.
const (
	baseline = 3               // windows in which the loops are busy before another one joins
	settling = 3               // windows after it has joined that do not count: connections move
	trial    = 8               // windows that count
	worth    = 0.05            // of a loop's equal share of the answers before, which one that joins has to add
	crowded  = 0.15            // of a CPU: loops that wait so much longer for one than before are too many
	retryMin = 2 * time.Second // from a trial that failed to the next one; each further failure doubles it
	retryMax = 64 * time.Second
)

// crowd finds out how many loops serve most. It belongs to loop 0.
type crowd struct {
	loops   int           // that accept, as far as it knows
	windows int           // since their number changed or, without a trial, since they were not busy
	did     work          // average of these windows
	before  work          // average of those before the last loop joined; zero without a trial
	retry   time.Duration // pause after the last trial; 0 if it did not fail
	retryAt time.Duration // when the next trial may begin
}

// work is what the loops that accept do in a window.
type work struct {
	full   bool    // all are busy
	rate   float64 // answers per second
	waited float64 // loops that were ready and waited for a CPU, on average
}

// verdict says how the number of loops that accept changes.
type verdict int

const (
	asBefore verdict = iota
	oneMore
	oneLess
)

// judge is told what the loops that accept, of most, did in a window.
func (c *crowd) judge(now time.Duration, loops, most int, did work) verdict {
	if loops != c.loops { // there was little to do, or a loop is stuck
		c.begin(loops, work{})
	}
	if c.before.rate > 0 {
		return c.try(now, did)
	}
	if !did.full {
		c.begin(loops, work{})
		return asBefore
	}
	if loops+1 <= most/2 {
		c.begin(loops+1, work{})
		return oneMore
	}
	c.windows++
	c.add(did, min(c.windows, baseline))
	if c.windows < baseline || now < c.retryAt || loops == most {
		return asBefore
	}
	c.begin(loops+1, c.did)
	return oneMore
}

// try judges a loop on trial.
func (c *crowd) try(now time.Duration, did work) verdict {
	c.windows++
	n := c.windows - settling
	if n <= 0 {
		return asBefore
	}
	if c.add(did, n); n < trial {
		return asBefore
	}
	room := !did.full && c.did.waited < c.before.waited+crowded
	if room || c.did.rate >= c.before.rate*(1+worth/float64(c.loops-1)) {
		c.begin(c.loops, work{})
		c.retry = 0
		return asBefore
	}
	c.begin(c.loops-1, work{})
	c.retry = min(max(2*c.retry, retryMin), retryMax)
	c.retryAt = now + c.retry
	return oneLess
}

// add makes a window the last of n whose average is kept.
func (c *crowd) add(did work, n int) {
	c.did.rate += (did.rate - c.did.rate) / float64(n)
	c.did.waited += (did.waited - c.did.waited) / float64(n)
}

func (c *crowd) begin(loops int, before work) {
	c.loops, c.before, c.windows, c.did = loops, before, 0, work{}
}
