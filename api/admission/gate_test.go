package admission_test

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/api/admission"
	"linkstream/schema/testkit"
)

var (
	here  = netip.MustParseAddr("192.0.2.1")
	there = netip.MustParseAddr("192.0.2.2")
	valid = admission.Credential{1}
)

// flood lets clients send a request after the other until end, and returns how many were admitted and refused. Each
// admitted request takes work.
func flood(g *admission.Gate, clients int, addr func(int) netip.Addr, end, work time.Duration) (admitted, refused int64) {
	var in, out atomic.Int64
	var wg sync.WaitGroup
	stop := time.Now().Add(end)
	for i := range clients {
		wg.Go(func() {
			for time.Now().Before(stop) {
				pass, err := g.Enter(admission.Credential{}, addr(i))
				if err != nil {
					out.Add(1)
					continue
				}
				time.Sleep(work)
				pass.Leave()
				in.Add(1)
			}
		})
	}
	wg.Wait()
	return in.Load(), out.Load()
}

func from(addr netip.Addr) func(int) netip.Addr { return func(int) netip.Addr { return addr } }

func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func TestGateBoundsAnonymousRequests(t *testing.T) {
	for slots := range 3 {
		slots++
		inBubble(t, fmt.Sprintf("to a request per millisecond and slot: %d", slots), func(t *testing.T) {
			g := admission.NewGateOf(slots)
			admitted, refused := flood(g, 512, from(here), 10*time.Second, time.Microsecond)
			if most := int64(slots) * (10_000 + 200 + 251); admitted > most || admitted < most*8/10 {
				t.Errorf("%d admitted in 10 s", admitted)
			}
			if most := int64(512-200*slots) * 40; refused > max(0, most) { // each has waited 250 ms, in which 250 per slot are admitted
				t.Errorf("%d refused in 10 s", refused)
			}
			testkit.Equal(t, "requests that wait", g.Waiting(), 0)
		})
	}
	inBubble(t, "to as many at a time as there are slots", func(t *testing.T) {
		g := admission.NewGateOf(2)
		admitted, refused := flood(g, 100, from(here), time.Second, 100*time.Millisecond)
		if admitted < 20 || admitted > 24 || g.Refused() != uint64(refused) {
			t.Errorf("%d admitted, %d refused", admitted, refused)
		}
	})
	inBubble(t, "after 250 ms without a slot", func(t *testing.T) {
		g := admission.NewGateOf(1)
		pass, err := g.Enter(admission.Credential{}, here)
		testkit.Must(t, err)
		began := time.Now()
		_, err = g.Enter(admission.Credential{}, there)
		if took := time.Since(began); !errors.Is(err, admission.ErrBusy) || took != 250*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		time.AfterFunc(100*time.Millisecond, pass.Leave)
		second, err := g.Enter(admission.Credential{}, there)
		testkit.Must(t, err)
		second.Leave()
		second.Leave()
		testkit.Equal(t, "requests that wait", g.Waiting(), 0)
	})
	inBubble(t, "but not a page with its files", func(t *testing.T) {
		g, began := admission.NewGateOf(1), time.Now()
		for range 50 {
			pass, err := g.Enter(admission.Credential{}, here)
			testkit.Must(t, err)
			pass.Leave()
		}
		testkit.Equal(t, "wait", time.Since(began), 0)
	})
	inBubble(t, "of each network, and leaves the others their turn", func(t *testing.T) {
		g := admission.NewGateOf(1)
		var attack sync.WaitGroup
		attack.Go(func() {
			flood(g, 2000, func(i int) netip.Addr { // of one customer
				return netip.MustParseAddr(fmt.Sprintf("2001:db8:1:%x::1", i))
			}, 5*time.Second, time.Microsecond)
		})
		time.Sleep(time.Second)
		_, refused := flood(g, 1, from(netip.MustParseAddr("2001:db8:2::1")), 3*time.Second, time.Microsecond)
		testkit.Equal(t, "refused", refused, 0)
		attack.Wait()
	})
}

func TestGateKnowsCredentials(t *testing.T) {
	enter := func(t *testing.T, g *admission.Gate, c admission.Credential) *admission.Pass {
		t.Helper()
		pass, err := g.Enter(c, here)
		testkit.Must(t, err)
		return pass
	}
	// blocked is a gate whose only slot is taken.
	blocked := func(t *testing.T) *admission.Gate {
		g := admission.NewGateOf(1)
		enter(t, g, valid).Trust()
		enter(t, g, admission.Credential{})
		return g
	}
	wait := func(g *admission.Gate, c admission.Credential) time.Duration {
		began := time.Now()
		if pass, err := g.Enter(c, here); err == nil {
			pass.Leave()
		}
		return time.Since(began)
	}
	inBubble(t, "that were valid a short time ago, which never wait", func(t *testing.T) {
		g := blocked(t)
		testkit.Equal(t, "wait of a known one", wait(g, valid), 0)
		testkit.Equal(t, "wait of another one", wait(g, admission.Credential{2}), 250*time.Millisecond)
		time.Sleep(10*time.Minute - time.Second)
		testkit.Equal(t, "wait after ten minutes", wait(g, valid), 0)
		time.Sleep(time.Second)
		testkit.Equal(t, "wait later", wait(g, valid), 250*time.Millisecond)
	})
	inBubble(t, "for as long as they are used", func(t *testing.T) {
		g := blocked(t)
		for range 30 {
			time.Sleep(5 * time.Minute)
			enter(t, g, valid).Trust()
		}
		testkit.Equal(t, "wait", wait(g, valid), 0)
	})
	inBubble(t, "until they are not valid any more", func(t *testing.T) {
		g := blocked(t)
		enter(t, g, valid).Distrust()
		testkit.Equal(t, "wait", wait(g, valid), 250*time.Millisecond)
	})
	inBubble(t, "that many requests bring for the first time, and refuses none", func(t *testing.T) {
		g := admission.NewGateOf(1)
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				pass := enter(t, g, valid)
				time.Sleep(time.Millisecond)
				pass.Trust()
			})
		}
		wg.Wait()
	})
	inBubble(t, "up to a number", func(t *testing.T) {
		g := admission.NewGateOf(1)
		for i := range admission.MaxKnown + 1000 {
			pass, err := g.Enter(admission.Credential{byte(i), byte(i >> 8), byte(i >> 16), 1}, here)
			testkit.Must(t, err)
			pass.Trust()
		}
		testkit.Equal(t, "known", g.Known(), admission.MaxKnown)
	})
}

func TestPassOutside(t *testing.T) {
	inBubble(t, "leaves the slot to others, and takes one again", func(t *testing.T) {
		g := admission.NewGateOf(1)
		pass, err := g.Enter(admission.Credential{}, here)
		testkit.Must(t, err)
		testkit.Must(t, pass.Outside(func() error {
			other, err := g.Enter(admission.Credential{}, there)
			testkit.Must(t, err)
			time.AfterFunc(100*time.Millisecond, other.Leave)
			return nil
		}))
		if _, err := g.Enter(admission.Credential{}, there); !errors.Is(err, admission.ErrBusy) {
			t.Errorf("two requests have the slot: %v", err)
		}
		failure := errors.New("failure")
		if err := pass.Outside(func() error { return failure }); !errors.Is(err, failure) {
			t.Error(err)
		}
		pass.Leave()
		testkit.Equal(t, "requests that wait", g.Waiting(), 0)
	})
	inBubble(t, "costs those who are known nothing", func(t *testing.T) {
		g := admission.NewGateOf(1)
		pass, err := g.Enter(valid, here)
		testkit.Must(t, err)
		pass.Trust()
		_, err = g.Enter(admission.Credential{}, there)
		testkit.Must(t, err)
		testkit.Must(t, pass.Outside(func() error { return nil }))
	})
}

func TestNewGateRegistersMetrics(t *testing.T) {
	set := metrics.NewSet()
	admission.NewGate(set)
	if names := set.ListMetricNames(); len(names) != 1 || names[0] != "linkstream_api_anonymous_refused_total" {
		t.Errorf("%v", names)
	}
}

// A client with a valid credential that ignores refusals gets no more of them than strangers get answers, and does not keep others from
// theirs.
func TestPassSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.NewGateOf(1)
		pass, err := g.Enter(valid, here)
		testkit.Must(t, err)
		pass.Trust()
		var refusals atomic.Int64
		var wg sync.WaitGroup
		stop := time.Now().Add(10 * time.Second)
		for range 512 {
			wg.Go(func() {
				for time.Now().Before(stop) {
					pass, err := g.Enter(valid, here)
					if err == nil {
						pass.Slow()
						pass.Leave()
					}
					refusals.Add(1)
				}
			})
		}
		stranger, err := g.Enter(admission.Credential{}, there)
		testkit.Must(t, err)
		stranger.Leave()
		wg.Wait()
		if n, most := refusals.Load(), int64(10_000+200+512*4*10); n > most || n < 1000 { // each waits 250 ms if the line is full
			t.Errorf("%d refusals within 10 s, want at most %d", n, most)
		}
		testkit.Equal(t, "requests that wait at the end", g.Waiting(), 0)
	})
}

// A known credential is no way past the gate for a flood: not all that it is sent with looks at it.
func TestKnownCredentialsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.NewGateOf(1)
		pass, err := g.Enter(valid, here)
		testkit.Must(t, err)
		pass.Trust()
		var admitted atomic.Int64
		var wg sync.WaitGroup
		stop := time.Now().Add(10 * time.Second)
		for range 512 {
			wg.Go(func() {
				for time.Now().Before(stop) {
					if pass, err := g.Enter(valid, here); err == nil {
						time.Sleep(time.Microsecond)
						pass.Leave()
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

func TestPassLookUp(t *testing.T) {
	const takes = 100 * time.Millisecond // for an answer of the store
	token := func(i int) admission.Credential { return admission.Credential{1: byte(i), 2: byte(i >> 8), 3: 1} }
	enter := func(g *admission.Gate, c admission.Credential, addr netip.Addr) *admission.Pass {
		pass, err := g.Enter(c, addr)
		testkit.Must(t, err)
		return pass
	}
	// ask lets f ask the store about a credential.
	ask := func(g *admission.Gate, c admission.Credential, addr netip.Addr, f func() error) error {
		pass, err := g.Enter(c, addr)
		if err != nil {
			return err
		}
		defer pass.Leave()
		return pass.LookUp(f)
	}
	// hold takes all look-ups until release is called.
	hold := func(g *admission.Gate) (release func()) {
		held := make(chan struct{})
		for i := range 2 {
			go ask(g, token(1000+i), here, func() error { <-held; return nil })
		}
		synctest.Wait()
		return func() {
			close(held)
			synctest.Wait()
		}
	}
	// call asks the store about a credential, and returns how long that took.
	call := func(g *admission.Gate, c admission.Credential, addr netip.Addr, trusted bool) (time.Duration, error) {
		began := time.Now()
		pass, err := g.Enter(c, addr)
		if err != nil {
			return time.Since(began), err
		}
		defer pass.Leave()
		err = pass.LookUp(func() error {
			time.Sleep(takes)
			if trusted {
				pass.Trust()
			}
			return nil
		})
		return time.Since(began), err
	}
	inBubble(t, "refuses none of fifty that are new at the same time", func(t *testing.T) {
		g := admission.NewGateOf(1)
		var all sync.WaitGroup
		began := time.Now()
		for i := range 50 {
			all.Go(func() {
				_, err := call(g, token(i), here, true)
				testkit.Must(t, err)
			})
		}
		all.Wait()
		testkit.Equal(t, "time of two at a time", time.Since(began), 50*takes/2)
		testkit.Equal(t, "refused", g.Refused(), 0)
	})
	for slots, atATime := range map[int]int{1: 2, 2: 2, 4: 4} {
		inBubble(t, fmt.Sprintf("asks about %d at a time with %d slots", atATime, slots), func(t *testing.T) {
			g := admission.NewGateOf(slots)
			var all sync.WaitGroup
			var asks, most atomic.Int64
			for i := range 20 {
				all.Go(func() {
					testkit.Must(t, ask(g, token(i), here, func() error {
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
	inBubble(t, "leaves the slot to others meanwhile, and takes one again", func(t *testing.T) {
		g := admission.NewGateOf(1)
		pass := enter(g, token(1), here)
		testkit.Must(t, pass.LookUp(func() error {
			began := time.Now()
			enter(g, admission.Credential{}, there).Leave()
			testkit.Equal(t, "wait of another one", time.Since(began), 0)
			return nil
		}))
		if _, err := g.Enter(admission.Credential{}, there); !errors.Is(err, admission.ErrBusy) {
			t.Errorf("two requests have the slot: %v", err)
		}
		pass.Leave()
		enter(g, admission.Credential{}, there).Leave()
		failure := errors.New("failure")
		if err := enter(g, token(2), here).LookUp(func() error { return failure }); !errors.Is(err, failure) {
			t.Error(err)
		}
		testkit.Equal(t, "requests that wait", g.Waiting(), 0)
	})
	inBubble(t, "waits no longer than five seconds", func(t *testing.T) {
		g := admission.NewGateOf(1)
		release := hold(g)
		began := time.Now()
		if err := ask(g, token(3), there, func() error { t.Error("it is asked"); return nil }); !errors.Is(err, admission.ErrBusy) {
			t.Error(err)
		}
		testkit.Equal(t, "wait", time.Since(began), 5*time.Second)
		testkit.Equal(t, "refused", g.Refused(), 1)
		release()
		took, err := call(g, token(4), there, true)
		testkit.Must(t, err)
		testkit.Equal(t, "time once the store answers", took, takes)
	})
	inBubble(t, "does not keep waiting who is known, or has no credential", func(t *testing.T) {
		g := admission.NewGateOf(1)
		enter(g, valid, here).Trust()
		release := hold(g)
		for _, c := range []admission.Credential{valid, {}} {
			took, err := call(g, c, here, false)
			testkit.Must(t, err)
			testkit.Equal(t, "time", took, takes)
		}
		release()
	})
	inBubble(t, "lets 512 that are not valid delay nobody who is known, and others by a turn", func(t *testing.T) {
		g := admission.NewGateOf(1)
		enter(g, valid, here).Trust()
		var attack sync.WaitGroup
		stop, next := time.Now().Add(20*time.Second), atomic.Int64{}
		for range 512 {
			attack.Go(func() {
				for time.Now().Before(stop) {
					_, _ = call(g, token(int(next.Add(1))), here, false) // refused now and then
				}
			})
		}
		for i := range 20 {
			time.Sleep(500 * time.Millisecond)
			took, err := call(g, valid, here, true)
			testkit.Must(t, err)
			testkit.Equal(t, "time of one who is known", took, takes)
			if took, err := call(g, admission.Credential{byte(i), 9}, there, true); err != nil || took > 3*takes {
				t.Errorf("a new one of another network: %v after %v", err, took)
			}
		}
		attack.Wait()
		testkit.Equal(t, "requests that wait", g.Waiting(), 0)
	})
}
