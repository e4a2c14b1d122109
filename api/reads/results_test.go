package reads_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/reads"
	"linkstream/schema/testkit"
	"linkstream/schema/turns"
)

const takes = 10 * time.Second

var limits = reads.Limits{Timeout: 2 * takes, Pause: time.Second, Share: 3, Age: time.Hour, Keys: 2, AtOnce: 2}

// results are reads of one key that take a while. Each returns the number of reads that have begun.
type results struct {
	results *reads.Results[string, int]
	began   int
	fails   error
}

// of is the result for a caller with a deadline, who has no use for results below least.
func (r *results) of(t *testing.T, patience time.Duration, least int) (value int, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	judge := func(found reads.Result[int]) reads.Use {
		if found.Value < least {
			return reads.Useless
		}
		return reads.Old
	}
	found, err := r.results.Of(ctx, turns.Account(1), "key", judge, func(ctx context.Context) (int, error) {
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

func (r *results) want(t *testing.T, what string, patience time.Duration, least, want int, lasts time.Duration) {
	t.Helper()
	began := time.Now()
	got, err := r.of(t, patience, least)
	testkit.Must(t, err)
	testkit.Equal(t, what, got, want)
	testkit.Equal(t, "time of "+what, time.Since(began), lasts)
}

func withResults(t *testing.T, name string, test func(t *testing.T, r *results)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := &results{results: reads.NewResults[string, int](limits)}
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
	withResults(t, "are waited for at first, by all callers together", func(t *testing.T, r *results) {
		r.want(t, "a caller without time", time.Second, 0, 0, time.Second)
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(func() { r.want(t, "a caller", time.Minute, 0, 1, takes-time.Second) })
		}
		callers.Wait()
		r.want(t, "a later caller", time.Second, 0, 1, 0)
		testkit.Equal(t, "readings", r.began, 1)
	})
	withResults(t, "that are old are returned while the next ones are read, after a pause",
		func(t *testing.T, r *results) {
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
	withResults(t, "that are useless are read again at once", func(t *testing.T, r *results) {
		r.want(t, "the first", time.Minute, 0, 1, takes)
		r.want(t, "one that needs more", time.Minute, 3, 3, 2*takes)
	})
	withResults(t, "are useless when they are too old", func(t *testing.T, r *results) {
		r.want(t, "the first", time.Minute, 0, 1, takes)
		time.Sleep(limits.Age)
		r.want(t, "one an age later", time.Minute, 0, 2, takes)
	})
	withResults(t, "that fail are not read again during the pause", func(t *testing.T, r *results) {
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

func TestReadingsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reads.NewResults[int, int](reads.Limits{Timeout: time.Hour, Age: time.Hour, Keys: 100, AtOnce: 2})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		running.Go(func() { r.Run(ctx) })
		defer cancel()
		read := func(account int64, key int) {
			_, err := r.Of(t.Context(), turns.Account(account), key, func(reads.Result[int]) reads.Use { return reads.Fresh },
				func(context.Context) (int, error) { time.Sleep(takes); return 0, nil })
			testkit.Must(t, err)
		}
		began := time.Now()
		var many sync.WaitGroup
		for key := range 10 {
			many.Go(func() { read(1, key) })
		}
		synctest.Wait()
		read(2, 10)
		testkit.Equal(t, "time of another account", time.Since(began), takes)
		many.Wait()
		testkit.Equal(t, "time of ten of one account", time.Since(began), 10*takes)
	})
}

func TestResultsOfOthersAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reads.NewResults[int, int](reads.Limits{Timeout: time.Hour, Age: time.Hour, Keys: 5})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		running.Go(func() { r.Run(ctx) })
		defer cancel()
		readings := 0
		read := func(account int64, key int) {
			_, err := r.Of(t.Context(), turns.Account(account), key, func(reads.Result[int]) reads.Use { return reads.Fresh },
				func(context.Context) (int, error) { readings++; return 0, nil })
			testkit.Must(t, err)
		}
		read(1, 1)
		read(1, 2)
		for key := range 100 {
			time.Sleep(time.Second)
			read(2, 100+key)
		}
		read(1, 1)
		read(1, 2)
		testkit.Equal(t, "readings", readings, 102)
	})
}
