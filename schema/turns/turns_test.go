package turns_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/schema/testkit"
	"linkstream/schema/turns"
)

func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

const a, b, c = 'a', 'b', 'c'

func client(name rune) turns.Client { return turns.Account(int64(name)) }

// work takes turns, keeps each place for a second and notes the names of the calls in the order of their places.
type work struct {
	turns *turns.Turns
	wg    sync.WaitGroup
	mu    sync.Mutex
	order []string
}

// begin begins a call. The first letter of its name is its client.
func (w *work) begin(t *testing.T, name string, price int) {
	of := client([]rune(name)[0])
	w.wg.Go(func() {
		testkit.Must(t, w.turns.Take(t.Context(), of, price))
		w.mu.Lock()
		w.order = append(w.order, name)
		w.mu.Unlock()
		time.Sleep(time.Second)
		w.turns.Leave(of)
	})
	synctest.Wait()
}

// began returns the names of the calls that have or had a place, in order.
func (w *work) began() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.order)
}

func TestTurns(t *testing.T) {
	inBubble(t, "go to one client after the other, and to the oldest call of each", func(t *testing.T) {
		w := &work{turns: turns.New(turns.Limits{Places: 1})}
		for _, name := range []string{"a1", "a2", "a3", "a4", "b1", "b2", "c1"} {
			w.begin(t, name, 1)
		}
		testkit.Equal(t, "waiting", w.turns.Waiting(), 6)
		w.wg.Wait()
		testkit.Equal(t, "order", w.began(), []string{"a1", "a2", "b1", "c1", "a3", "b2", "a4"})
	})
	inBubble(t, "go to a call with a price after as many turns of its client", func(t *testing.T) {
		w := &work{turns: turns.New(turns.Limits{Places: 1})}
		w.begin(t, "a1", 3)
		w.begin(t, "a2", 3)
		w.begin(t, "a3", 0)
		for i := range 6 {
			w.begin(t, fmt.Sprint("b", i), 1)
		}
		w.wg.Wait()
		testkit.Equal(t, "order", w.began(), []string{"a1", "b0", "b1", "a2", "b2", "a3", "b3", "b4", "b5"})
	})
	inBubble(t, "do not let an expensive call wait for ever", func(t *testing.T) {
		w := &work{turns: turns.New(turns.Limits{Places: 1})}
		w.begin(t, "a1", 100)
		w.begin(t, "a2", 100)
		time.Sleep(time.Second / 2)
		for newcomer := range rune(200) {
			w.begin(t, string('b'+newcomer), 1)
			time.Sleep(time.Second)
		}
		w.wg.Wait()
		if i := slices.Index(w.began(), "a2"); i < 99 || i > 101 {
			t.Errorf("it was number %d", i)
		}
	})
	inBubble(t, "go to as many calls at a time as there are places", func(t *testing.T) {
		w := &work{turns: turns.New(turns.Limits{Places: 3})}
		began := time.Now()
		for range 9 {
			w.begin(t, "a", 1)
		}
		w.wg.Wait()
		testkit.Equal(t, "time of nine calls", time.Since(began), 3*time.Second)
	})
	inBubble(t, "leave places to others where each client has a share", func(t *testing.T) {
		w := &work{turns: turns.New(turns.Limits{Places: 3, PlacesEach: 2})}
		for _, name := range []string{"a1", "a2", "a3", "a4", "b1", "b2"} {
			w.begin(t, name, 1)
		}
		testkit.Equal(t, "at once", w.began(), []string{"a1", "a2", "b1"})
		w.wg.Wait()
		testkit.Equal(t, "of all", len(w.began()), 6)
	})
	inBubble(t, "refuse calls at once when too many wait", func(t *testing.T) {
		w := &work{turns: turns.New(turns.Limits{Places: 1, Waiting: 3, WaitingEach: 2})}
		wantFull := func(name rune) {
			t.Helper()
			if err := w.turns.Take(t.Context(), client(name), 1); !errors.Is(err, turns.ErrFull) {
				t.Errorf("%c: %v", name, err)
			}
		}
		w.begin(t, "a", 1)
		w.begin(t, "a", 1)
		w.begin(t, "a", 1)
		wantFull(a) // two of it wait
		w.begin(t, "b", 1)
		wantFull(b) // three wait
		wantFull(c)
		w.wg.Wait()
		testkit.Must(t, w.turns.Take(t.Context(), client(c), 1))
		w.turns.Leave(client(c))
	})
	inBubble(t, "are waited for until the context is done", func(t *testing.T) {
		turns := turns.New(turns.Limits{Places: 1})
		testkit.Must(t, turns.Take(t.Context(), client(a), 1))
		for _, name := range []rune{a, b} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			if err := turns.Take(ctx, client(name), 1); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			testkit.Equal(t, "wait", time.Since(began), time.Second)
			cancel()
		}
		testkit.Equal(t, "waiting", turns.Waiting(), 0)
		turns.Leave(client(a))
		done, cancel := context.WithCancel(t.Context())
		cancel()
		testkit.Must(t, turns.Take(done, client(b), 1)) // there is no need to wait
	})
	inBubble(t, "are not lost between calls that give up and places that become free", func(t *testing.T) {
		limits := turns.Limits{Places: 3, PlacesEach: 2, Waiting: 20, WaitingEach: 5}
		turns := turns.New(limits)
		var inside, took atomic.Int64
		var of [8]atomic.Int64
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				random, c := rand.New(rand.NewPCG(1, uint64(i))), i%8
				for range 200 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(20))*time.Millisecond)
					if turns.Take(ctx, client(rune(c)), 1+random.IntN(3)) == nil {
						if inside.Add(1) > 3 || of[c].Add(1) > 2 {
							t.Error("too many have a place")
						}
						took.Add(1)
						time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
						of[c].Add(-1)
						inside.Add(-1)
						turns.Leave(client(rune(c)))
					} else {
						time.Sleep(time.Millisecond)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		if took.Load() < 500 {
			t.Errorf("%d calls had a place", took.Load())
		}
		testkit.Equal(t, "waiting", turns.Waiting(), 0)
		for i := range limits.Places {
			testkit.Must(t, turns.Take(t.Context(), client(rune(i)), 1))
		}
	})
}

// TestClientsAreForgotten requires that clients that hold nothing and wait for nothing take no memory.
func TestClientsAreForgotten(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	bound, each := turns.NewBound(2, 1), turns.New(turns.Limits{Places: 1, PlacesEach: 1, Waiting: 1, WaitingEach: 1})
	taken, full := turns.New(turns.Limits{Places: 1}), turns.New(turns.Limits{Places: 1, Waiting: 1})
	testkit.Must(t, taken.Take(done, client(a), 1))
	testkit.Must(t, full.Take(done, client(a), 1))
	waits, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = full.Take(waits, client(b), 1) })
	testkit.Eventually(t, "a call waits", func() bool { return full.Waiting() == 1 })
	for name, use := range map[string]func(turns.Client) error{
		"of a bound":   func(c turns.Client) error { err := bound.Take(c, 1); bound.Leave(c, 1); return err },
		"with a place": func(c turns.Client) error { err := each.Take(done, c, 1); each.Leave(c); return err },
		"that give up": func(c turns.Client) error {
			if err := taken.Take(done, c, 1); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		},
		"that are refused": func(c turns.Client) error {
			if err := full.Take(done, c, 1); !errors.Is(err, turns.ErrFull) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		},
	} {
		before := testkit.Heap()
		for id := range int64(200_000) {
			testkit.Must(t, use(turns.Account(id)))
		}
		if grown := testkit.Heap() - before; grown > 2<<20 {
			t.Errorf("200,000 clients %s: the heap grew by %d bytes", name, grown)
		}
	}
	stop()
	wg.Wait()
	for _, all := range []any{bound, each, taken, full} {
		runtime.KeepAlive(all)
	}
}
