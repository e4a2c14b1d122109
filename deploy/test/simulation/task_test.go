//go:build !race

package simulation_test

import (
	"errors"
	"iter"
)

// errKilled ends a task whose process is killed.
var errKilled = errors.New("the process was killed")

// yield lets other tasks run: anything may happen until it returns. It returns errKilled if the task must end.
type yield func() error

// task is a coroutine that runs from one yield to the next each time it is resumed.
type task struct {
	resume func() (struct{}, bool)
	kill   func() // returns once the task has ended
}

// start returns a task that repeats work.
func start(work func(yield)) *task {
	resume, kill := iter.Pull(func(next func(struct{}) bool) {
		killed := false
		yield := func() error {
			if killed = killed || !next(struct{}{}); killed {
				return errKilled
			}
			return nil
		}
		for yield() == nil {
			work(yield)
		}
	})
	return &task{resume, kill}
}
