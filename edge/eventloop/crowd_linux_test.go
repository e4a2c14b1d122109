package eventloop_test

import (
	"bytes"
	"os"
	"testing"
	"time"

	"linkstream/edge/eventloop"
	"linkstream/schema/testkit"
)

// loops are those of a server, of which so many as most may accept.
type loops struct {
	eventloop.Crowd
	count, most int
	waited      float64 // for CPUs
	now         time.Duration
}

// run has the loops work for some windows in which they serve rate answers per second, and returns after how many of them their
// number has changed, 0 if it has not.
func (l *loops) run(windows int, full bool, rate float64) (changed int) {
	for i := range windows {
		l.now += eventloop.Window
		if change := l.Judge(l.now, l.count, l.most, full, rate, l.waited); change != 0 {
			l.count += change
			return i + 1
		}
	}
	return 0
}

func TestLoopsJoinIfItIsWorthIt(t *testing.T) {
	const long = 1000 // windows
	t.Run("none does while there is room", func(t *testing.T) {
		l := loops{count: 1, most: 2}
		for range long {
			testkit.Equal(t, "changed after", l.run(eventloop.Baseline-1, true, 100), 0)
			testkit.Equal(t, "changed after", l.run(1, false, 100), 0)
		}
	})
	t.Run("one joins at once while half of the CPUs are without one", func(t *testing.T) {
		l := loops{count: 1, most: 8}
		for range 3 {
			testkit.Equal(t, "joined after", l.run(1, true, 100), 1)
		}
		testkit.Equal(t, "changed after", l.run(eventloop.Baseline-1, true, 100), 0)
		testkit.Equal(t, "loops", l.count, 4)
	})
	t.Run("one joins after the others are busy for a while, and stays if it adds to what they serve", func(t *testing.T) {
		l := loops{count: 1, most: 3}
		for i, rate := range []float64{1000, 1051} {
			testkit.Equal(t, "joined after", l.run(long, true, rate), eventloop.Baseline)
			testkit.Equal(t, "loops", l.count, i+2)
			testkit.Equal(t, "changed after", l.run(eventloop.Trial, true, rate*(1+0.051/float64(i+1))), 0)
		}
		testkit.Equal(t, "changed when all have joined", l.run(long, true, 1100), 0)
	})
	t.Run("it leaves if it adds less than a twentieth of their share", func(t *testing.T) {
		l := loops{count: 2, most: 3}
		testkit.Equal(t, "joined after", l.run(long, true, 1000), eventloop.Baseline)
		testkit.Equal(t, "left after", l.run(long, true, 1024), eventloop.Trial)
	})
	t.Run("it stays if there is room then", func(t *testing.T) {
		l := loops{count: 1, most: 2}
		l.run(long, true, 100)
		testkit.Equal(t, "changed after", l.run(long, false, 100), 0)
		testkit.Equal(t, "loops", l.count, 2)
	})
	t.Run("it leaves if there is room then, but none of a CPU", func(t *testing.T) {
		l := loops{count: 1, most: 2, waited: 0.1}
		l.run(long, true, 100)
		l.waited += eventloop.Crowded
		testkit.Equal(t, "left after", l.run(long, false, 100), eventloop.Trial)
	})
	t.Run("it stays if all wait for CPUs and serve more", func(t *testing.T) {
		l := loops{count: 1, most: 2}
		l.run(long, true, 100)
		l.waited = 2
		testkit.Equal(t, "changed after", l.run(long, false, 106), 0)
	})
	t.Run("it stays if they waited for CPUs as long before", func(t *testing.T) {
		l := loops{count: 1, most: 2, waited: 0.5}
		l.run(long, true, 100)
		l.waited += eventloop.Crowded / 2
		testkit.Equal(t, "changed after", l.run(long, false, 100), 0)
	})
	t.Run("it leaves if all serve no more, and the next trial is later each time", func(t *testing.T) {
		l := loops{count: 1, most: 2}
		testkit.Equal(t, "joined after", l.run(long, true, 100), eventloop.Baseline)
		testkit.Equal(t, "left after", l.run(long, true, 90), eventloop.Trial)
		testkit.Equal(t, "loops", l.count, 1)
		pause := int(eventloop.RetryMin / eventloop.Window)
		testkit.Equal(t, "joined again after", l.run(long, true, 100), pause)
		testkit.Equal(t, "left after", l.run(long, true, 104), eventloop.Trial)
		testkit.Equal(t, "joined again after", l.run(long, true, 100), 2*pause)
		testkit.Equal(t, "left after", l.run(eventloop.Trial, true, 200), 0)
		testkit.Equal(t, "loops", l.count, 2)
	})
	t.Run("the pause ends at a minute", func(t *testing.T) {
		l := loops{count: 1, most: 2}
		l.run(long, true, 100)
		for range 20 {
			l.run(long, true, 90)
			if paused := l.run(10*long, true, 100); time.Duration(paused)*eventloop.Window > 65*time.Second {
				t.Fatalf("%d windows", paused)
			}
		}
	})
	t.Run("a trial ends if the number changes for another reason", func(t *testing.T) {
		l := loops{count: 1, most: 2}
		l.run(long, true, 100)
		l.count = 1 // since there was little to do
		testkit.Equal(t, "joined after", l.run(long, true, 100), eventloop.Baseline)
		testkit.Equal(t, "loops", l.count, 2)
	})
	t.Run("there is no trial where goroutines answer", func(t *testing.T) {
		l := loops{count: 1, most: 3}
		testkit.Equal(t, "joined after", l.run(long, true, 0), eventloop.Baseline)
		testkit.Equal(t, "joined after", l.run(long, true, 0), eventloop.Baseline)
		testkit.Equal(t, "loops", l.count, 3)
	})
}

func TestRunDelay(t *testing.T) {
	testkit.Equal(t, "delay", eventloop.RunDelay([]byte("917817 59238 2\n")), 59238*time.Nanosecond)
	for _, stat := range []string{"", "\n", "1", "1 2", "1 x 3\n", "1 2 3 4", "1 99999999999999999999 3"} {
		testkit.Equal(t, stat, eventloop.RunDelay([]byte(stat)), 0)
	}
	stat, err := os.ReadFile("/proc/thread-self/schedstat")
	testkit.Must(t, err)
	testkit.Equal(t, "fields of the kernel's schedstat", len(bytes.Fields(stat)), 3)
}
