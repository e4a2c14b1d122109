package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"linkstream/bench/load"
	"linkstream/bench/proc"
)

// newLoop returns a subject that does an operation in this process, in so many goroutines. Operations count from 1.
func newLoop(name string, goroutines int, operation func(ctx context.Context, n int64) error) *subject {
	s := &subject{name: name, processes: []process{{"bench", proc.Self}}}
	var started atomic.Int64
	s.work = func(ctx context.Context, window time.Duration) (load.Result, error) {
		before, began := s.done.Load(), time.Now()
		group, ctx := errgroup.WithContext(ctx)
		for range goroutines {
			group.Go(func() error {
				for time.Since(began) < window {
					if err := operation(ctx, started.Add(1)); err != nil {
						return fmt.Errorf("%s: %w", name, err)
					}
					s.done.Add(1)
				}
				return nil
			})
		}
		err := group.Wait()
		return load.Result{Answers: s.done.Load() - before, Elapsed: time.Since(began)}, err
	}
	return s
}
