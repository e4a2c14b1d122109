package fair_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/schema/fair"
	"linkstream/schema/testkit"
)

func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// work calls Take, keeps the place for a second and notes the call's name in order.
type work struct {
	turns *fair.Turns[string]
	wg    sync.WaitGroup
	mu    sync.Mutex
	order []string
}

func (w *work) begin(t *testing.T, client, name string) {
	w.wg.Go(func() {
		testkit.Must(t, w.turns.Take(t.Context(), client))
		w.mu.Lock()
		w.order = append(w.order, name)
		w.mu.Unlock()
		time.Sleep(time.Second)
		w.turns.Leave(client)
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
		w := &work{turns: fair.NewTurns[string](fair.Limits{Places: 1})}
		for _, call := range []string{"a1", "a2", "a3", "a4", "b1", "b2", "c1"} {
			w.begin(t, call[:1], call)
		}
		testkit.Equal(t, "waiting", w.turns.Waiting(), 6)
		w.wg.Wait()
		testkit.Equal(t, "order", w.began(), []string{"a1", "a2", "b1", "c1", "a3", "b2", "a4"})
		testkit.Equal(t, "clients at the end", w.turns.Clients(), 0)
	})
	inBubble(t, "go to as many calls at a time as there are places", func(t *testing.T) {
		w := &work{turns: fair.NewTurns[string](fair.Limits{Places: 3})}
		began := time.Now()
		for i := range 9 {
			w.begin(t, "a", fmt.Sprint(i))
		}
		w.wg.Wait()
		testkit.Equal(t, "time of nine calls", time.Since(began), 3*time.Second)
	})
	inBubble(t, "leave places to others where each client has a share", func(t *testing.T) {
		w := &work{turns: fair.NewTurns[string](fair.Limits{Places: 3, PlacesEach: 2})}
		for _, call := range []string{"a1", "a2", "a3", "a4", "b1", "b2"} {
			w.begin(t, call[:1], call)
		}
		testkit.Equal(t, "at once", w.began(), []string{"a1", "a2", "b1"})
		w.wg.Wait()
		testkit.Equal(t, "of all", len(w.began()), 6)
		testkit.Equal(t, "clients at the end", w.turns.Clients(), 0)
	})
	inBubble(t, "refuse calls at once when too many wait", func(t *testing.T) {
		turns := fair.NewTurns[string](fair.Limits{Places: 1, Waiting: 3, WaitingEach: 2})
		testkit.Must(t, turns.Take(t.Context(), "a"))
		var wg sync.WaitGroup
		begin := func(client string) {
			wg.Go(func() {
				testkit.Must(t, turns.Take(t.Context(), client))
				turns.Leave(client)
			})
			synctest.Wait()
		}
		wantFull := func(client string) {
			t.Helper()
			if err := turns.Take(t.Context(), client); !errors.Is(err, fair.ErrFull) {
				t.Errorf("%s: %v", client, err)
			}
		}
		begin("a")
		begin("a")
		wantFull("a") // has two
		begin("b")
		wantFull("b") // there are three
		wantFull("c")
		turns.Leave("a")
		wg.Wait()
		testkit.Must(t, turns.Take(t.Context(), "c"))
		turns.Leave("c")
		testkit.Equal(t, "clients at the end", turns.Clients(), 0)
	})
	inBubble(t, "are waited for until the context is done", func(t *testing.T) {
		turns := fair.NewTurns[string](fair.Limits{Places: 1})
		testkit.Must(t, turns.Take(t.Context(), "a"))
		for _, client := range []string{"a", "b"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			if err := turns.Take(ctx, client); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			testkit.Equal(t, "wait", time.Since(began), time.Second)
			cancel()
		}
		testkit.Equal(t, "waiting", turns.Waiting(), 0)
		testkit.Equal(t, "clients", turns.Clients(), 1)
		turns.Leave("a")
		done, cancel := context.WithCancel(t.Context())
		cancel()
		testkit.Must(t, turns.Take(done, "b")) // there is no need to wait
	})
	inBubble(t, "are not lost between calls that give up and places that become free", func(t *testing.T) {
		limits := fair.Limits{Places: 3, PlacesEach: 2, Waiting: 20, WaitingEach: 5}
		turns := fair.NewTurns[int](limits)
		var inside, took atomic.Int64
		var of [8]atomic.Int64
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				random, client := rand.New(rand.NewPCG(1, uint64(i))), i%8
				for range 200 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(20))*time.Millisecond)
					if turns.Take(ctx, client) == nil {
						if inside.Add(1) > 3 || of[client].Add(1) > 2 {
							t.Error("too many have a place")
						}
						took.Add(1)
						time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
						of[client].Add(-1)
						inside.Add(-1)
						turns.Leave(client)
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
		testkit.Equal(t, "clients", turns.Clients(), 0)
		for i := range limits.Places {
			testkit.Must(t, turns.Take(t.Context(), i))
		}
	})
}
