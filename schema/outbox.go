package schema

import (
	"context"
	"strings"
)

// MaxPending bounds the entries of the outbox that PendingChanges reads.
const MaxPending = 10_000

// Pending has the entries that wait in an outbox.
type Pending struct {
	Changes []Change // nil if Missed
	Missed  bool     // there is too much to be read: anything may have changed
	Next    int64    // from here the next call goes on
}

// Outbox is the changes of the store that are not published yet. A change enters the outbox in the transaction that
// makes it, so an acknowledged change is published even if the process is killed right after its answer.
type Outbox interface {
	// PendingChanges returns the changes that were committed and not taken: all if after is 0, otherwise at least the
	// changes that were not in the results of a call that returned after. Changes from its results may be repeated.
	PendingChanges(ctx context.Context, after int64) (Pending, error)
	// TakeChanges calls publish with the oldest changes, a few entries' worth, and removes them if publish returns nil. It
	// does not call publish if nothing waits. Of concurrent calls each takes other changes, or none. taken is false if
	// nothing waits or another call takes the rest. If the process is killed before TakeChanges returns, the changes wait
	// further, or are removed after publish has returned nil.
	TakeChanges(ctx context.Context, publish func([]Change) error) (taken bool, err error)
}

// AppendChanges appends the changes with the keys that a text has in its lines. It leaves out lines that are no keys.
func AppendChanges(changes []Change, lines string) []Change {
	for key := range strings.Lines(lines) {
		if change, ok := ParseChange(strings.TrimSuffix(key, "\n")); ok {
			changes = append(changes, change)
		}
	}
	return changes
}
