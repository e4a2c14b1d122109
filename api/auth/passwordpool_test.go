package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/testkit"
	"linkstream/schema/turns"
)

var (
	here  = turns.Site(netip.MustParseAddr("192.0.2.1"))
	there = turns.Site(netip.MustParseAddr("192.0.2.2"))
)

func TestPasswordPool(t *testing.T) {
	p := auth.NewPasswordPool()
	hash, err := p.Hash(t.Context(), here, "correct horse")
	testkit.Must(t, err)
	t.Run("verifies passwords", func(t *testing.T) {
		for password, want := range map[string]bool{"correct horse": true, "correct hors": false, "": false} {
			if ok, err := p.Verify(t.Context(), here, hash, password); ok != want || err != nil {
				t.Errorf("%q: %v, %v", password, ok, err)
			}
		}
	})
	t.Run("refuses passwords of unknown accounts in the same time", func(t *testing.T) {
		refuse := func(hash string) func() {
			return func() {
				if ok, err := p.Verify(t.Context(), here, hash, "wrong"); ok || err != nil {
					t.Fatalf("%v, %v", ok, err)
				}
			}
		}
		testkit.SameTime(t, refuse(hash), refuse(""))
	})
	t.Run("reports a malformed hash", func(t *testing.T) {
		if ok, err := p.Verify(t.Context(), here, "secret", "secret"); ok || err == nil || errors.Is(err, auth.ErrBusy) {
			t.Errorf("%v, %v", ok, err)
		}
	})
	t.Run("queues calls for 5 seconds at most", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := auth.NewPasswordPool()
			release := p.Occupy()
			began := time.Now()
			_, err := p.Hash(t.Context(), here, "correct horse")
			testkit.WantCode(t, err, schema.CodeUnavailable)
			if took := time.Since(began); took != 5*time.Second {
				t.Errorf("waited for %v", took)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began = time.Now()
			_, err = p.Hash(ctx, here, "correct horse")
			testkit.WantCode(t, err, schema.CodeUnavailable)
			testkit.Equal(t, "wait for a cancelled call", time.Since(began), time.Second)
			var waiting sync.WaitGroup
			waiting.Go(func() {
				if ok, err := p.Verify(t.Context(), here, hash, "correct horse"); !ok || err != nil {
					t.Errorf("after 4 seconds: %v, %v", ok, err)
				}
			})
			time.Sleep(4 * time.Second)
			release()
			waiting.Wait()
		})
	})
	t.Run("takes half of the CPUs", func(t *testing.T) {
		for cpus, slots := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 7: 3, 64: 32} {
			testkit.Equal(t, fmt.Sprint("slots with ", cpus, " CPUs"), auth.PasswordSlots(cpus), slots)
		}
	})
	// wantBusy requires that a call is refused at once.
	wantBusy := func(t *testing.T, p *auth.PasswordPool, client turns.Client) {
		t.Helper()
		began := time.Now()
		_, err := p.Hash(t.Context(), client, "correct horse")
		if !errors.Is(err, auth.ErrBusy) || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	}
	t.Run("refuses calls at once when the queue is full", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := auth.NewPasswordPool()
			release := p.Occupy()
			var waiting sync.WaitGroup
			for i := range auth.MaxWaiting * 2 {
				waiting.Go(func() { _, _ = p.Hash(t.Context(), turns.Account(int64(i)), "correct horse") })
			}
			synctest.Wait()
			testkit.Equal(t, "calls that wait", p.Waiting(), auth.MaxWaiting)
			wantBusy(t, p, here)
			waiting.Wait() // until they time out
			testkit.Equal(t, "calls that wait at last", p.Waiting(), 0)
			release()
		})
	})
	t.Run("refuses calls of one network at once when many wait, and no calls of others", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := auth.NewPasswordPool()
			release := p.Occupy()
			var waiting sync.WaitGroup
			for range auth.MaxWaitingEach * 2 {
				waiting.Go(func() { _, _ = p.Hash(t.Context(), here, "correct horse") })
			}
			waiting.Go(func() { _, _ = p.Verify(t.Context(), there, hash, "correct horse") })
			synctest.Wait()
			testkit.Equal(t, "calls that wait", p.Waiting(), auth.MaxWaitingEach+1)
			wantBusy(t, p, here)
			waiting.Wait()
			release()
			_, err := p.Hash(t.Context(), here, "correct horse")
			testkit.Must(t, err)
		})
	})
}
