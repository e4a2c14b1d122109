package load_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/bench/load"
)

const tick = 10 * time.Millisecond // between requests at a rate of 100

// take calls Next until there are no more, resting after each as if for an answer, and returns when requests were due
// and when they could be sent, from the start on.
func take(s *load.Schedule, rest func(n int) time.Duration) (due, sent []time.Duration) {
	start := time.Now()
	for {
		at, ok := s.Next()
		if !ok {
			return due, sent
		}
		due, sent = append(due, at.Sub(start)), append(sent, time.Since(start))
		time.Sleep(rest(len(due)))
	}
}

func TestSchedule(t *testing.T) {
	everyTick := func(n int) (all []time.Duration) {
		for i := range n {
			all = append(all, time.Duration(i)*tick)
		}
		return all
	}
	t.Run("requests are due at equal distances", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			due, sent := take(load.NewSchedule(100, time.Second, time.Sleep), func(int) time.Duration { return 0 })
			if want := everyTick(100); !slices.Equal(due, want) || !slices.Equal(sent, want) {
				t.Errorf("due %v\nsent %v", due, sent)
			}
		})
	})
	t.Run("a slow answer makes the next requests late but moves none of them", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			due, sent := take(load.NewSchedule(100, 100*time.Millisecond, time.Sleep), func(n int) time.Duration {
				if n == 3 {
					return 5*tick + tick/2
				}
				return 0
			})
			if want := everyTick(10); !slices.Equal(due, want) {
				t.Errorf("due %v", due)
			}
			late := 2*tick + 5*tick + tick/2 // when the answer to the third came
			want := []time.Duration{0, tick, 2 * tick, late, late, late, late, late, 8 * tick, 9 * tick}
			if !slices.Equal(sent, want) {
				t.Errorf("sent %v, want %v", sent, want)
			}
		})
	})
	t.Run("connections share the requests", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := load.NewSchedule(100, time.Second, time.Sleep)
			var mu sync.Mutex
			var all []time.Duration
			var takers sync.WaitGroup
			for range 7 {
				takers.Go(func() {
					due, sent := take(s, func(int) time.Duration { return 3 * tick })
					mu.Lock()
					defer mu.Unlock()
					all = append(all, due...)
					if !slices.Equal(due, sent) {
						t.Errorf("due %v\nsent %v", due, sent)
					}
				})
			}
			takers.Wait()
			slices.Sort(all)
			if !slices.Equal(all, everyTick(100)) {
				t.Errorf("due %v", all)
			}
		})
	})
	t.Run("it waits again if it is woken early", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := load.NewSchedule(100, 50*time.Millisecond, func(d time.Duration) { time.Sleep(max(d/2, time.Nanosecond)) })
			due, sent := take(s, func(int) time.Duration { return 0 })
			if !slices.Equal(due, sent) || len(due) != 5 {
				t.Errorf("due %v\nsent %v", due, sent)
			}
		})
	})
	t.Run("it gives up requests that are too late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := load.NewSchedule(100, time.Second, time.Sleep)
			due, _ := take(s, func(n int) time.Duration {
				if n == 10 {
					return time.Hour
				}
				return 0
			})
			if len(due) != 10 || s.Unsent() != 90 {
				t.Errorf("%d sent, %d unsent", len(due), s.Unsent())
			}
		})
	})
}
