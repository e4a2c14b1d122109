package testkit

import (
	"sync/atomic"
	"testing"
	"time"
)

const (
	// enoughTries is how many tries have to be late before a promise is broken: a fault delays all of them. fewTries are
	// enough once triesOver has passed.
	enoughTries = 10
	fewTries    = 3
	triesOver   = 2 * Patience
	// probePause is the pause between two looks at whether the machine lets this process run.
	probePause = 10 * time.Millisecond
)

// Takes requires that call returns within promised in at least one of ten tries. Tries that are late while other
// programs have the CPUs do not count, and are repeated: load alone does not break a promise.
func Takes(tb testing.TB, promised time.Duration, call func(try int)) {
	tb.Helper()
	keeps(tb, promised, func(try int) (took time.Duration, busy bool) {
		return watch(func() { call(try) })
	})
}

// Follows requires that a change takes effect within promised in at least one of ten tries, which count as in Takes.
// change makes the change each time, and returns a check that succeeds once the change has taken effect. In each try it
// has to, within Patience.
func Follows(tb testing.TB, promised time.Duration, change func(try int) (effect func() error)) {
	tb.Helper()
	keeps(tb, promised, func(try int) (took time.Duration, busy bool) {
		effect := change(try)
		return watch(func() { Succeeds(tb, effect) })
	})
}

// Within calls f, and requires that it returns within promised.
type Within func(what string, promised time.Duration, f func())

// Promptly calls attempt, which calls within for each promise. One late call breaks the promise, unless other programs
// have the CPUs: then the whole attempt is repeated, because a fault may be over once the late call returns.
func Promptly(tb testing.TB, attempt func(within Within)) {
	tb.Helper()
	for began, late := time.Now(), true; late; {
		late = false
		attempt(func(what string, promised time.Duration, f func()) {
			tb.Helper()
			took, busy := watch(f)
			switch {
			case took <= promised:
			case busy:
				late = true
				tb.Logf("%s takes %v on a busy machine, want at most %v", what, took, promised)
			default:
				tb.Errorf("%s takes %v, want at most %v", what, took, promised)
			}
		})
		if late && time.Since(began) > triesOver {
			tb.Log("the machine is too busy to judge these promises")
			return
		}
	}
}

// keeps calls attempt until it takes at most promised.
func keeps(tb testing.TB, promised time.Duration, attempt func(try int) (took time.Duration, busy bool)) {
	tb.Helper()
	fastest, counted, began := time.Duration(1<<63-1), 0, time.Now()
	for try := 0; ; try++ {
		took, busy := attempt(try)
		if took <= promised {
			return
		}
		fastest = min(fastest, took)
		if !busy {
			counted++
		}
		over := time.Since(began) > triesOver
		switch {
		case counted == enoughTries, over && counted >= fewTries:
			tb.Errorf("it takes at least %v in %d tries, want at most %v", fastest, try+1, promised)
			return
		case over:
			tb.Logf("the machine is too busy to judge a promise of %v: it takes at least %v in %d tries", promised,
				fastest, try+1)
			return
		}
	}
}

// watch returns how long f takes, and whether the machine is busy during f: this process gets a CPU later than
// probePause after it asks for one, on average. The programs that f waits for get theirs as late, one after the other.
func watch(f func()) (took time.Duration, busy bool) {
	var ended atomic.Bool
	late := make(chan bool)
	go func() {
		began, pauses := time.Now(), time.Duration(0)
		for ; !ended.Load(); pauses++ {
			time.Sleep(probePause)
		}
		late <- time.Since(began) > 2*pauses*probePause
	}()
	defer func() { // also if f ends the test
		ended.Store(true)
		busy = <-late
	}()
	began := time.Now()
	f()
	return time.Since(began), false
}
