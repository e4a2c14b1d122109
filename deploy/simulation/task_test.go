package simulation_test

import (
	"errors"
	"iter"
)

// errKilled is what a task meets whose process was killed.
var errKilled = errors.New("the process was killed")

// pause gives way to other tasks: anything may happen until it returns. It returns errKilled if the task must end.
type pause func() error

// task is something that goes on by itself: it runs only while it is resumed, from one pause to the next.
type task struct {
	resume func() (struct{}, bool)
	kill   func() // returns once the task has ended
}

// start returns a task that does work again and again.
func start(work func(pause)) *task {
	resume, kill := iter.Pull(func(yield func(struct{}) bool) {
		killed := false
		pause := func() error {
			if killed = killed || !yield(struct{}{}); killed {
				return errKilled
			}
			return nil
		}
		for pause() == nil {
			work(pause)
		}
	})
	return &task{resume, kill}
}
