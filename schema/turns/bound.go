package turns

import (
	"errors"
	"sync"
)

// Errors of Bound.Take.
var (
	ErrEach = errors.New("the client holds as much as it may")
	ErrAll  = errors.New("all clients together hold as much as they may")
)

// Bound bounds how much clients hold at the same time.
type Bound struct {
	all, each int

	mu    sync.Mutex
	total int
	held  map[Client]int
}

// NewBound returns a Bound of all clients together and of each. 0: no bound.
func NewBound(all, each int) *Bound { return &Bound{all: all, each: each, held: map[Client]int{}} }

// Take lets a client hold n more, which Leave gives back. With ErrEach or ErrAll it takes nothing.
func (b *Bound) Take(c Client, n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	held, bounded := b.held[c], b.each > 0 && c != Client{}
	switch {
	case bounded && held+n > b.each:
		return ErrEach
	case b.all > 0 && b.total+n > b.all:
		return ErrAll
	}
	b.total += n
	if bounded {
		b.held[c] = held + n
	}
	return nil
}

// Leave takes back n that a client holds.
func (b *Bound) Leave(c Client, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total -= n
	if held := b.held[c] - n; held > 0 {
		b.held[c] = held
	} else {
		delete(b.held, c)
	}
}

// Total returns how much all clients hold together.
func (b *Bound) Total() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}
