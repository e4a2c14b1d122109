package request_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/api/request"
	"linkstream/schema/testkit"
	"linkstream/schema/turns"
)

var (
	here  = netip.MustParseAddr("192.0.2.1")
	there = netip.MustParseAddr("192.0.2.2")
	valid = request.Credential{1}
)

// flood lets clients send a request after the other until end, and returns how many were admitted and refused. Each
// admitted request takes work.
func flood(
	a *request.Anonymous, clients int, addr func(int) netip.Addr, end, work time.Duration,
) (admitted, refused int64) {
	var in, out atomic.Int64
	var wg sync.WaitGroup
	stop := time.Now().Add(end)
	for i := range clients {
		wg.Go(func() {
			for time.Now().Before(stop) {
				turn, err := a.Begin(request.Credential{}, addr(i))
				if err != nil {
					out.Add(1)
					continue
				}
				time.Sleep(work)
				turn.End()
				in.Add(1)
			}
		})
	}
	wg.Wait()
	return in.Load(), out.Load()
}

func newAnonymous(places int) *request.Anonymous {
	return request.NewAnonymous(metrics.NewSet(), places)
}

// wantRefused requires that a number of requests were refused.
func wantRefused(t *testing.T, set *metrics.Set, n int64) {
	t.Helper()
	var text strings.Builder
	set.WritePrometheus(&text)
	if want := fmt.Sprintf("linkstream_api_anonymous_refused_total %d\n", n); !strings.Contains(text.String(), want) {
		t.Errorf("no %q in\n%s", want, &text)
	}
}

// wantFree requires that all places and look-ups are free, once the pace allows requests again.
func wantFree(t *testing.T, a *request.Anonymous, places int) {
	t.Helper()
	time.Sleep(time.Minute)
	began := time.Now()
	var taken []*request.Turn
	for range places {
		turn, err := a.Begin(request.Credential{}, there)
		testkit.Must(t, err)
		taken = append(taken, turn)
	}
	for _, turn := range taken {
		turn.End()
	}
	lookUp := func(id byte, f func() error) error {
		turn, err := a.Begin(request.Credential{id, 7}, there)
		testkit.Must(t, err)
		defer turn.End()
		return turn.LookUp(f)
	}
	testkit.Must(t, lookUp(1, func() error { return lookUp(2, func() error { return nil }) }))
	testkit.Equal(t, "wait for places and look-ups", time.Since(began), 0)
}

func from(addr netip.Addr) func(int) netip.Addr { return func(int) netip.Addr { return addr } }

func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func TestAnonymousRequestsAreBounded(t *testing.T) {
	for places := range 3 {
		places++
		inBubble(t, fmt.Sprintf("to a request per millisecond and place: %d", places), func(t *testing.T) {
			a := newAnonymous(places)
			admitted, refused := flood(a, 512, from(here), 10*time.Second, time.Microsecond)
			if most := int64(places) * (10_000 + 200 + 251); admitted > most || admitted < most*8/10 {
				t.Errorf("%d admitted in 10 s", admitted)
			}
			if most := int64(512-200*places) * 40; refused > max(0, most) {
				// each has waited 250 ms, in which 250 per place are admitted
				t.Errorf("%d refused in 10 s", refused)
			}
			wantFree(t, a, places)
		})
	}
	inBubble(t, "to as many at a time as there are places", func(t *testing.T) {
		set := metrics.NewSet()
		a := request.NewAnonymous(set, 2)
		admitted, refused := flood(a, 100, from(here), time.Second, 100*time.Millisecond)
		if admitted < 20 || admitted > 24 {
			t.Errorf("%d admitted, %d refused", admitted, refused)
		}
		wantRefused(t, set, refused)
	})
	inBubble(t, "after 250 ms without a place", func(t *testing.T) {
		a := newAnonymous(1)
		turn, err := a.Begin(request.Credential{}, here)
		testkit.Must(t, err)
		began := time.Now()
		_, err = a.Begin(request.Credential{}, there)
		if took := time.Since(began); !errors.Is(err, request.ErrBusy) || took != 250*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		time.AfterFunc(100*time.Millisecond, turn.End)
		second, err := a.Begin(request.Credential{}, there)
		testkit.Must(t, err)
		second.End()
		second.End()
		wantFree(t, a, 1)
	})
	inBubble(t, "but not a page with its files", func(t *testing.T) {
		a, began := newAnonymous(1), time.Now()
		for range 50 {
			turn, err := a.Begin(request.Credential{}, here)
			testkit.Must(t, err)
			turn.End()
		}
		testkit.Equal(t, "wait", time.Since(began), 0)
	})
	inBubble(t, "of each network, and leaves the others their turn", func(t *testing.T) {
		a := newAnonymous(1)
		var attack sync.WaitGroup
		attack.Go(func() {
			flood(a, 2000, func(i int) netip.Addr { // of one customer
				return netip.MustParseAddr(fmt.Sprintf("2001:db8:1:%x::1", i))
			}, 5*time.Second, time.Microsecond)
		})
		time.Sleep(time.Second)
		_, refused := flood(a, 1, from(netip.MustParseAddr("2001:db8:2::1")), 3*time.Second, time.Microsecond)
		testkit.Equal(t, "refused", refused, 0)
		attack.Wait()
	})
}

func TestKnownCredentials(t *testing.T) {
	enter := func(t *testing.T, a *request.Anonymous, c request.Credential) *request.Turn {
		t.Helper()
		turn, err := a.Begin(c, here)
		testkit.Must(t, err)
		return turn
	}
	// blocked is an Anonymous whose only place is taken.
	blocked := func(t *testing.T) *request.Anonymous {
		a := newAnonymous(1)
		enter(t, a, valid).Trust()
		enter(t, a, request.Credential{})
		return a
	}
	wait := func(a *request.Anonymous, c request.Credential) time.Duration {
		began := time.Now()
		if turn, err := a.Begin(c, here); err == nil {
			turn.End()
		}
		return time.Since(began)
	}
	inBubble(t, "that were valid a short time ago, which never wait", func(t *testing.T) {
		a := blocked(t)
		testkit.Equal(t, "wait of a known one", wait(a, valid), 0)
		testkit.Equal(t, "wait of another one", wait(a, request.Credential{2}), 250*time.Millisecond)
		time.Sleep(10*time.Minute - time.Second)
		testkit.Equal(t, "wait after ten minutes", wait(a, valid), 0)
		time.Sleep(time.Second)
		testkit.Equal(t, "wait later", wait(a, valid), 250*time.Millisecond)
	})
	inBubble(t, "for as long as they are used", func(t *testing.T) {
		a := blocked(t)
		for range 30 {
			time.Sleep(5 * time.Minute)
			enter(t, a, valid).Trust()
		}
		testkit.Equal(t, "wait", wait(a, valid), 0)
	})
	inBubble(t, "until they are not valid any more", func(t *testing.T) {
		a := blocked(t)
		enter(t, a, valid).Distrust()
		testkit.Equal(t, "wait", wait(a, valid), 250*time.Millisecond)
	})
	inBubble(t, "that many requests bring for the first time, and refuses none", func(t *testing.T) {
		a := newAnonymous(1)
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				turn := enter(t, a, valid)
				time.Sleep(time.Millisecond)
				turn.Trust()
			})
		}
		wg.Wait()
	})
	inBubble(t, "up to 65,536", func(t *testing.T) {
		a := newAnonymous(1)
		credential := func(i int) request.Credential { return request.Credential{byte(i), byte(i >> 8), byte(i >> 16), 1} }
		for i := range 1<<16 + 1000 {
			enter(t, a, credential(i)).Trust()
		}
		enter(t, a, request.Credential{}) // takes the place
		known := 0
		for i := range 1<<16 + 1000 {
			if wait(a, credential(i)) == 0 {
				known++
			}
		}
		testkit.Equal(t, "known", known, 1<<16)
	})
}

func TestOutside(t *testing.T) {
	inBubble(t, "leaves the place to others, and takes one again", func(t *testing.T) {
		a := newAnonymous(1)
		turn, err := a.Begin(request.Credential{}, here)
		testkit.Must(t, err)
		testkit.Must(t, turn.Outside(func() error {
			other, err := a.Begin(request.Credential{}, there)
			testkit.Must(t, err)
			time.AfterFunc(100*time.Millisecond, other.End)
			return nil
		}))
		if _, err := a.Begin(request.Credential{}, there); !errors.Is(err, request.ErrBusy) {
			t.Errorf("two requests have the place: %v", err)
		}
		failure := errors.New("failure")
		if err := turn.Outside(func() error { return failure }); !errors.Is(err, failure) {
			t.Error(err)
		}
		turn.End()
		wantFree(t, a, 1)
	})
	inBubble(t, "costs known credentials nothing", func(t *testing.T) {
		a := newAnonymous(1)
		turn, err := a.Begin(valid, here)
		testkit.Must(t, err)
		turn.Trust()
		_, err = a.Begin(request.Credential{}, there)
		testkit.Must(t, err)
		testkit.Must(t, turn.Outside(func() error { return nil }))
	})
}

func TestNewAnonymousRegistersMetrics(t *testing.T) {
	set := metrics.NewSet()
	request.NewAnonymous(set, 1)
	if names := set.ListMetricNames(); len(names) != 1 || names[0] != "linkstream_api_anonymous_refused_total" {
		t.Errorf("%v", names)
	}
}

// A client with a valid credential that ignores refusals gets at most as many of them as other clients get answers, and
// does not keep others from theirs.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnonymous(1)
		turn, err := a.Begin(valid, here)
		testkit.Must(t, err)
		turn.Trust()
		var refusals atomic.Int64
		var wg sync.WaitGroup
		stop := time.Now().Add(10 * time.Second)
		for range 512 {
			wg.Go(func() {
				for time.Now().Before(stop) {
					turn, err := a.Begin(valid, here)
					if err == nil {
						turn.Slow()
						turn.End()
					}
					refusals.Add(1)
				}
			})
		}
		stranger, err := a.Begin(request.Credential{}, there)
		testkit.Must(t, err)
		stranger.End()
		wg.Wait()
		if n, most := refusals.Load(), int64(10_000+200+512*4*10); n > most || n < 1000 {
			// each waits 250 ms if the line is full
			t.Errorf("%d refusals within 10 s, want at most %d", n, most)
		}
		wantFree(t, a, 1)
	})
}

// A flood with a known credential waits for turns as well: not every request of it looks at the credential.
func TestKnownCredentialsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnonymous(1)
		turn, err := a.Begin(valid, here)
		testkit.Must(t, err)
		turn.Trust()
		var admitted atomic.Int64
		var wg sync.WaitGroup
		stop := time.Now().Add(10 * time.Second)
		for range 512 {
			wg.Go(func() {
				for time.Now().Before(stop) {
					if turn, err := a.Begin(valid, here); err == nil {
						time.Sleep(time.Microsecond)
						turn.End()
						admitted.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n, most := admitted.Load(), int64(2000+10*100+10_000+200+512); n > most || n < 3000 {
			t.Errorf("%d were admitted within 10 s, want at most %d", n, most)
		}
	})
}

func TestLookUp(t *testing.T) {
	const takes = 100 * time.Millisecond // for an answer of the store
	token := func(i int) request.Credential { return request.Credential{1: byte(i), 2: byte(i >> 8), 3: 1} }
	enter := func(a *request.Anonymous, c request.Credential, addr netip.Addr) *request.Turn {
		turn, err := a.Begin(c, addr)
		testkit.Must(t, err)
		return turn
	}
	// ask lets f ask the store about a credential.
	ask := func(a *request.Anonymous, c request.Credential, addr netip.Addr, f func() error) error {
		turn, err := a.Begin(c, addr)
		if err != nil {
			return err
		}
		defer turn.End()
		return turn.LookUp(f)
	}
	// hold takes all look-ups until release is called.
	hold := func(a *request.Anonymous) (release func()) {
		held := make(chan struct{})
		for i := range 2 {
			go ask(a, token(1000+i), here, func() error { <-held; return nil })
		}
		synctest.Wait()
		return func() {
			close(held)
			synctest.Wait()
		}
	}
	// call asks the store about a credential, and returns how long that took.
	call := func(a *request.Anonymous, c request.Credential, addr netip.Addr, trusted bool) (time.Duration, error) {
		began := time.Now()
		turn, err := a.Begin(c, addr)
		if err != nil {
			return time.Since(began), err
		}
		defer turn.End()
		err = turn.LookUp(func() error {
			time.Sleep(takes)
			if trusted {
				turn.Trust()
			}
			return nil
		})
		return time.Since(began), err
	}
	inBubble(t, "refuses none of fifty that are new at the same time", func(t *testing.T) {
		set := metrics.NewSet()
		a := request.NewAnonymous(set, 1)
		var all sync.WaitGroup
		began := time.Now()
		for i := range 50 {
			all.Go(func() {
				_, err := call(a, token(i), here, true)
				testkit.Must(t, err)
			})
		}
		all.Wait()
		testkit.Equal(t, "time of two at a time", time.Since(began), 50*takes/2)
		wantRefused(t, set, 0)
	})
	for places, atATime := range map[int]int{1: 2, 2: 2, 4: 4} {
		inBubble(t, fmt.Sprintf("asks about %d at a time with %d places", atATime, places), func(t *testing.T) {
			a := newAnonymous(places)
			var all sync.WaitGroup
			var asks, most atomic.Int64
			for i := range 20 {
				all.Go(func() {
					testkit.Must(t, ask(a, token(i), here, func() error {
						most.Store(max(most.Load(), asks.Add(1))) // the others sleep
						time.Sleep(takes)
						asks.Add(-1)
						return nil
					}))
				})
			}
			all.Wait()
			testkit.Equal(t, "at a time", most.Load(), int64(atATime))
		})
	}
	inBubble(t, "leaves the place to others during it, and takes one again", func(t *testing.T) {
		a := newAnonymous(1)
		turn := enter(a, token(1), here)
		testkit.Must(t, turn.LookUp(func() error {
			began := time.Now()
			enter(a, request.Credential{}, there).End()
			testkit.Equal(t, "wait of another one", time.Since(began), 0)
			return nil
		}))
		if _, err := a.Begin(request.Credential{}, there); !errors.Is(err, request.ErrBusy) {
			t.Errorf("two requests have the place: %v", err)
		}
		turn.End()
		enter(a, request.Credential{}, there).End()
		failure := errors.New("failure")
		if err := enter(a, token(2), here).LookUp(func() error { return failure }); !errors.Is(err, failure) {
			t.Error(err)
		}
		wantFree(t, a, 1)
	})
	inBubble(t, "waits at most five seconds", func(t *testing.T) {
		set := metrics.NewSet()
		a := request.NewAnonymous(set, 1)
		release := hold(a)
		began := time.Now()
		if err := ask(a, token(3), there, func() error { t.Error("it is asked"); return nil }); !errors.Is(err,
			request.ErrBusy) {
			t.Error(err)
		}
		testkit.Equal(t, "wait", time.Since(began), 5*time.Second)
		wantRefused(t, set, 1)
		release()
		took, err := call(a, token(4), there, true)
		testkit.Must(t, err)
		testkit.Equal(t, "time once the store answers", took, takes)
	})
	inBubble(t, "does not delay requests with a known credential, or without one", func(t *testing.T) {
		a := newAnonymous(1)
		enter(a, valid, here).Trust()
		release := hold(a)
		for _, c := range []request.Credential{valid, {}} {
			took, err := call(a, c, here, false)
			testkit.Must(t, err)
			testkit.Equal(t, "time", took, takes)
		}
		release()
	})
	inBubble(t, "lets 512 invalid ones delay no known one, and others by a turn", func(t *testing.T) {
		a := newAnonymous(1)
		enter(a, valid, here).Trust()
		var attack sync.WaitGroup
		stop, next := time.Now().Add(20*time.Second), atomic.Int64{}
		for range 512 {
			attack.Go(func() {
				for time.Now().Before(stop) {
					_, _ = call(a, token(int(next.Add(1))), here, false) // refused now and then
				}
			})
		}
		for i := range 20 {
			time.Sleep(500 * time.Millisecond)
			took, err := call(a, valid, here, true)
			testkit.Must(t, err)
			testkit.Equal(t, "time of one who is known", took, takes)
			if took, err := call(a, request.Credential{byte(i), 9}, there, true); err != nil || took > 3*takes {
				t.Errorf("a new one of another network: %v after %v", err, took)
			}
		}
		attack.Wait()
		wantFree(t, a, 1)
	})
}

// Requests with a credential that takes a client's turns are one client, whatever their networks.
func TestTrustAs(t *testing.T) {
	const takes = 10 * time.Millisecond
	readers, others := turns.Readers(1), turns.Readers(2)
	inBubble(t, "many networks with credentials of one client delay another client by a turn", func(t *testing.T) {
		a := newAnonymous(1)
		trust := func(c request.Credential, of turns.Client) {
			turn, err := a.Begin(c, here)
			testkit.Must(t, err)
			testkit.Must(t, turn.LookUp(func() error { turn.TrustAs(of); return nil }))
			turn.End()
		}
		for i := range byte(90) {
			trust(request.Credential{2, i}, readers)
		}
		trust(valid, others)
		stop := time.Now().Add(5 * time.Second)
		var flood sync.WaitGroup
		for i := range 200 {
			addr := netip.AddrFrom4([4]byte{198, 51, 100, byte(i)})
			flood.Go(func() {
				for time.Now().Before(stop) {
					if turn, err := a.Begin(request.Credential{2, byte(i % 90)}, addr); err == nil {
						time.Sleep(takes)
						turn.End()
					}
				}
			})
		}
		time.Sleep(time.Second)
		for range 10 {
			began := time.Now()
			turn, err := a.Begin(valid, there)
			testkit.Must(t, err)
			if took := time.Since(began); took > 2*takes+5*time.Millisecond {
				t.Errorf("it waits %v", took)
			}
			turn.End()
			time.Sleep(50 * time.Millisecond)
		}
		flood.Wait()
		turn, err := a.Begin(valid, here)
		testkit.Must(t, err)
		turn.Distrust()
		turn.End()
		wantFree(t, a, 1)
	})
}
