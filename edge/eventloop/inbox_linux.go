package eventloop

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// oneEvent is the value that is written to an eventfd.
var oneEvent = [8]byte(binary.NativeEndian.AppendUint64(nil, 1))

// inbox has the messages for a loop. Any goroutine posts; the loop has the other methods.
type inbox struct {
	wakeup   int         // an eventfd that ends a wait
	sleeping atomic.Bool // a message needs a wake-up
	posted   atomic.Bool // there is a message

	mu       sync.Mutex
	messages []message
	ended    bool // nobody reads the messages any more

	spare []message // for the next messages
}

// message is a message of other goroutines to a loop.
type message struct {
	kind   messageKind
	idle   time.Duration // shedOne: since when, at most
	waiter *Waiter       // mayGoOn: its request
}

type messageKind uint8

const (
	shedOne messageKind = iota // the longest idle connection makes room
	mayGoOn                    // what a request has waited for is there
	wakeUp                     // see Server.stopping and loop.aborted
)

// post sends the loop a message. It returns false if the loop has ended.
func (b *inbox) post(m message) bool {
	b.mu.Lock()
	defer b.mu.Unlock() // not before the write: the loop closes wakeup once it has ended
	if b.ended {
		return false
	}
	b.messages = append(b.messages, m)
	b.posted.Store(true)
	if b.sleeping.Swap(false) {
		_, _ = unix.Write(b.wakeup, oneEvent[:]) // fails only if the counter is at its end, which wakes as well
	}
	return true
}

// take returns the messages that have been posted. giveBack must follow.
func (b *inbox) take() []message {
	if !b.posted.Swap(false) {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	messages := b.messages
	b.messages, b.spare = b.spare[:0], nil
	return messages
}

// giveBack lets the memory of messages be used again.
func (b *inbox) giveBack(messages []message) {
	if messages != nil {
		clear(messages)
		b.spare = messages
	}
}

// endInbox makes post fail. The next take returns what was posted before.
func (b *inbox) endInbox() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.posted.Store(true)
}

// awake makes the eventfd ready for the next wake-up.
func (b *inbox) awake() {
	var count [8]byte
	_, _ = unix.Read(b.wakeup, count[:])
}
