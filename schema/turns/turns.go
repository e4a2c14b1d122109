package turns

import (
	"container/list"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
)

// Limits are the limits of Turns. 0 means any number.
type Limits struct {
	Places      int // calls that have a place at the same time
	PlacesEach  int // of one client
	Waiting     int // calls that wait for a place
	WaitingEach int // of one client
}

// ErrFull means that as many calls wait as may.
var ErrFull = errors.New("too many calls wait for their turn")

// Turns hands out places. While all are in use, clients take turns: each place that becomes free goes to the next
// client in line, and to its oldest call. A call with a price of n waits until n turns have come to its client. So a
// client with many calls, or with expensive ones, delays another one by one call per place. (This is deficit round
// robin, Shreedhar and Varghese 1995, with a quantum of 1.)
type Turns struct {
	limits Limits

	mu      sync.Mutex
	free    int // places
	waiting int // calls
	clients map[Client]*queue
	line    list.List // of *queue with calls that may have a place; empty if a place is free
}

// queue is the places and the calls of a client.
type queue struct {
	places int
	calls  []*call       // that wait, the oldest first
	passed int           // turns that have come to the oldest call
	inLine *list.Element // nil: not in line
}

type call struct {
	price int
	ready chan struct{} // closed when the call has a place
}

// New returns Turns whose places are all free.
func New(limits Limits) *Turns {
	for _, limit := range []*int{&limits.Places, &limits.PlacesEach, &limits.Waiting, &limits.WaitingEach} {
		if *limit == 0 {
			*limit = math.MaxInt
		}
	}
	return &Turns{limits: limits, free: limits.Places, clients: map[Client]*queue{}}
}

// Take gets a place for a call, for which it waits until ctx is done. It returns ErrFull at once if the call may not
// wait, and the error of ctx if it has waited in vain. After nil, Leave must follow.
func (t *Turns) Take(ctx context.Context, c Client, price int) error {
	waits, err := t.enter(c, price)
	if waits == nil {
		return err
	}
	select {
	case <-waits.ready:
		return nil
	case <-ctx.Done():
	}
	if t.giveUp(c, waits) {
		return ctx.Err()
	}
	return nil
}

// enter gives a call a place, or returns it if it waits.
func (t *Turns) enter(c Client, price int) (*call, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.clients[c]
	if q == nil {
		q = &queue{}
		t.clients[c] = q
	}
	switch {
	case t.free > 0 && q.places < t.limits.PlacesEach:
		t.free--
		q.places++
		return nil, nil
	case t.waiting >= t.limits.Waiting || len(q.calls) >= t.limits.WaitingEach:
		t.forget(c, q)
		return nil, ErrFull
	}
	waits := &call{price, make(chan struct{})}
	q.calls = append(q.calls, waits)
	t.waiting++
	t.lineUp(q)
	return waits, nil
}

// giveUp ends the wait of a call. It returns false if the call has a place.
func (t *Turns) giveUp(c Client, waits *call) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.clients[c]
	if q == nil {
		return false
	}
	i := slices.Index(q.calls, waits)
	if i < 0 {
		return false
	}
	q.calls = slices.Delete(q.calls, i, i+1)
	t.waiting--
	if len(q.calls) == 0 {
		t.leaveLine(q)
	}
	t.forget(c, q)
	return true
}

// Leave gives a place of a client back.
func (t *Turns) Leave(c Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := t.clients[c]
	left.places--
	t.free++
	t.lineUp(left)
	for t.free > 0 && t.line.Len() > 0 {
		q := t.line.Front().Value.(*queue)
		if q.passed++; q.passed < q.calls[0].price {
			t.line.MoveToBack(q.inLine)
			continue
		}
		t.leaveLine(q)
		close(q.calls[0].ready)
		q.calls = slices.Delete(q.calls, 0, 1)
		q.places++
		t.free--
		t.waiting--
		t.lineUp(q)
	}
	t.forget(c, left)
}

// Waiting returns the number of calls that wait.
func (t *Turns) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting
}

// WaitingOf returns the number of a client's calls that wait.
func (t *Turns) WaitingOf(c Client) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := t.clients[c]; q != nil {
		return len(q.calls)
	}
	return 0
}

// lineUp puts a client at the end of the line, if it waits and may have a place.
func (t *Turns) lineUp(q *queue) {
	if q.inLine == nil && len(q.calls) > 0 && q.places < t.limits.PlacesEach {
		q.inLine = t.line.PushBack(q)
	}
}

func (t *Turns) leaveLine(q *queue) {
	if q.inLine != nil {
		t.line.Remove(q.inLine)
		q.inLine, q.passed = nil, 0
	}
}

func (t *Turns) forget(c Client, q *queue) {
	if q.places == 0 && len(q.calls) == 0 {
		delete(t.clients, c)
	}
}
