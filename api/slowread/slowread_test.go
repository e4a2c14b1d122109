package slowread_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/slowread"
	"linkstream/schema/testkit"
)

const takes = 10 * time.Second

var limits = slowread.Limits{Timeout: 2 * takes, Pause: time.Second, Share: 3, Age: time.Hour, Keys: 2, AtOnce: 2}

// reads are reads of one key that take a while. Each returns the number of those that have begun.
type reads struct {
	results *slowread.Results[string, int]
	began   int
	fails   error
}

// of is the result for a caller that has some time, and for whom results below least are useless.
func (r *reads) of(t *testing.T, patience time.Duration, least int) (value int, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	judge := func(found slowread.Result[int]) slowread.Use {
		if found.Value < least {
			return slowread.Useless
		}
		return slowread.Old
	}
	found, err := r.results.Of(ctx, "key", judge, func(ctx context.Context) (int, error) {
		r.began++
		n := r.began
		select {
		case <-time.After(takes):
			return n, r.fails
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
	if found == nil {
		return 0, err
	}
	return found.Value, err
}

func (r *reads) want(t *testing.T, what string, patience time.Duration, least, want int, lasts time.Duration) {
	t.Helper()
	began := time.Now()
	got, err := r.of(t, patience, least)
	testkit.Must(t, err)
	testkit.Equal(t, what, got, want)
	testkit.Equal(t, "time of "+what, time.Since(began), lasts)
}

func inBubble(t *testing.T, name string, test func(t *testing.T, r *reads)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := &reads{results: slowread.New[string, int](limits)}
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { r.results.Run(ctx) })
			defer running.Wait()
			defer cancel()
			test(t, r)
		})
	})
}

func TestResults(t *testing.T) {
	inBubble(t, "are waited for at first, by all callers together", func(t *testing.T, r *reads) {
		r.want(t, "a caller without time", time.Second, 0, 0, time.Second)
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(func() { r.want(t, "a caller", time.Minute, 0, 1, takes-time.Second) })
		}
		callers.Wait()
		r.want(t, "a later caller", time.Second, 0, 1, 0)
		testkit.Equal(t, "readings", r.began, 1)
	})
	inBubble(t, "that are old are returned while the next ones are read, after a pause", func(t *testing.T, r *reads) {
		r.want(t, "the first", time.Minute, 0, 1, takes)
		r.want(t, "one during the pause", time.Minute, 0, 1, 0)
		time.Sleep(3*takes - time.Second)
		r.want(t, "another one during the pause", time.Minute, 0, 1, 0)
		testkit.Equal(t, "readings during the pause", r.began, 1)
		time.Sleep(time.Second)
		r.want(t, "one after the pause", time.Minute, 0, 1, 0)
		time.Sleep(takes)
		synctest.Wait()
		r.want(t, "one after the reading", time.Minute, 0, 2, 0)
	})
	inBubble(t, "that are useless are read again at once", func(t *testing.T, r *reads) {
		r.want(t, "the first", time.Minute, 0, 1, takes)
		r.want(t, "one that needs more", time.Minute, 3, 3, 2*takes)
	})
	inBubble(t, "are useless when they are too old", func(t *testing.T, r *reads) {
		r.want(t, "the first", time.Minute, 0, 1, takes)
		time.Sleep(limits.Age)
		r.want(t, "one an age later", time.Minute, 0, 2, takes)
	})
	inBubble(t, "that fail are not read again during the pause", func(t *testing.T, r *reads) {
		r.fails = errors.New("the store is away")
		for range 3 {
			if _, err := r.of(t, time.Minute, 0); !errors.Is(err, r.fails) {
				t.Errorf("got %v", err)
			}
		}
		testkit.Equal(t, "readings", r.began, 1)
		r.fails = nil
		time.Sleep(3 * takes)
		r.want(t, "one after the pause", time.Minute, 0, 2, takes)
	})
}
