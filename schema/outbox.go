package schema

import (
	"context"
	"strings"
	"time"
)

// MaxPending bounds the entries of the outbox that PendingChanges reads: 1000 per second in the minute that it keeps.
const MaxPending = 60_000

// OutboxPosition is a position in an outbox. The zero value is before all entries.
type OutboxPosition struct {
	Next int64  // all entries before it were read
	Seen string // which other entries were read, in a form that only the store knows; "" if none
}

// Pending has the entries of an outbox after a position.
type Pending struct {
	Changes []Change       // nil if Missed
	Missed  bool           // there is too much to be read: anything may have changed
	Next    OutboxPosition // from here the next call goes on
}

// Outbox is the newest changes of the store. A change enters the outbox in the transaction that makes it, so an
// acknowledged change is published even if the process is killed right after its answer.
type Outbox interface {
	// PendingChanges returns the changes in the outbox that were committed after a position: at least those that were not
	// in the results of the call that returned the position. If its Seen is lost, changes from results may be repeated.
	PendingChanges(ctx context.Context, after OutboxPosition) (Pending, error)
	// TakeChanges calls publish with the oldest changes, a few entries' worth, unless they were published. They leave the
	// outbox no sooner than keep after publish has returned nil. Of concurrent calls each takes other changes, or none.
	// taken is false if nothing waits or another call takes the rest. If publish fails, the changes wait for the next
	// call; if the process is killed, for half a minute at most.
	TakeChanges(ctx context.Context, keep time.Duration, publish func([]Change) error) (taken bool, err error)
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
