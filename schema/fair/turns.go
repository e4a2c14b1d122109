package fair

import (
	"container/list"
	"context"
	"errors"
	"math"
	"sync"
)

// Limits are those of Turns.
type Limits struct {
	Places      int // calls that have a place at the same time
	PlacesEach  int // of one client; 0: all places
	Waiting     int // calls that wait for a place; 0: any number
	WaitingEach int // of one client; 0: any number
}

// ErrFull means that as many calls wait as may.
var ErrFull = errors.New("too many calls wait for their turn")

// Turns hands out places. While all are in use, clients take turns: each place that becomes free goes to the next client that waits,
// and to the oldest call of that client. So a client with many calls delays another one by one place.
type Turns[K comparable] struct {
	limits Limits

	mu      sync.Mutex
	free    int // places
	waiting int // calls
	clients map[K]*client
	next    list.List // of *client with calls that may have a place; empty if a place is free
}

// client is a client with places or with calls that wait.
type client struct {
	places int
	calls  list.List     // of chan struct{}, closed when the call has a place; the oldest first
	turn   *list.Element // in Turns.next, or nil
}

// NewTurns returns Turns whose places are all free.
func NewTurns[K comparable](limits Limits) *Turns[K] {
	if limits.PlacesEach == 0 {
		limits.PlacesEach = math.MaxInt
	}
	return &Turns[K]{limits: limits, free: limits.Places, clients: map[K]*client{}}
}

// Take gets a place, for which it waits until ctx is done. It returns ErrFull at once if the call may not wait, and the error of ctx
// if it has waited in vain. After nil, Leave must follow with the same key.
func (t *Turns[K]) Take(ctx context.Context, key K) error {
	t.mu.Lock()
	c := t.clients[key]
	if c == nil {
		c = &client{}
		t.clients[key] = c
	}
	if t.free > 0 && c.places < t.limits.PlacesEach {
		t.give(c)
		t.mu.Unlock()
		return nil
	}
	if reached(t.waiting, t.limits.Waiting) || reached(c.calls.Len(), t.limits.WaitingEach) {
		t.forget(key, c)
		t.mu.Unlock()
		return ErrFull
	}
	ready := make(chan struct{})
	call := c.calls.PushBack(ready)
	t.waiting++
	t.lineUp(c)
	t.mu.Unlock()

	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		if t.giveUp(key, c, call) {
			return ctx.Err()
		}
		return nil
	}
}

func reached(n, limit int) bool { return limit > 0 && n >= limit }

// giveUp ends the wait of a call. It returns false if the call has got its place meanwhile.
func (t *Turns[K]) giveUp(key K, c *client, call *list.Element) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-call.Value.(chan struct{}):
		return false
	default:
	}
	c.calls.Remove(call)
	t.waiting--
	if c.calls.Len() == 0 && c.turn != nil {
		t.next.Remove(c.turn)
		c.turn = nil
	}
	t.forget(key, c)
	return true
}

// Leave gives a place back.
func (t *Turns[K]) Leave(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.clients[key]
	c.places--
	t.free++
	t.lineUp(c)
	for t.free > 0 && t.next.Len() > 0 {
		next := t.next.Remove(t.next.Front()).(*client)
		next.turn = nil
		close(next.calls.Remove(next.calls.Front()).(chan struct{}))
		t.waiting--
		t.give(next)
		t.lineUp(next)
	}
	t.forget(key, c)
}

// Waiting returns the number of calls that wait.
func (t *Turns[K]) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting
}

func (t *Turns[K]) give(c *client) {
	t.free--
	c.places++
}

// lineUp puts a client at the end of the line, if it waits and may have a place.
func (t *Turns[K]) lineUp(c *client) {
	if c.turn == nil && c.calls.Len() > 0 && c.places < t.limits.PlacesEach {
		c.turn = t.next.PushBack(c)
	}
}

func (t *Turns[K]) forget(key K, c *client) {
	if c.places == 0 && c.calls.Len() == 0 {
		delete(t.clients, key)
	}
}
