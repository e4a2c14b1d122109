package auth_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/auth"
	"linkstream/schema"
)

func TestPasswords(t *testing.T) {
	p := auth.NewPasswords()
	hash, err := p.Hash(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("are verified", func(t *testing.T) {
		for password, want := range map[string]bool{"correct horse": true, "correct hors": false, "": false} {
			if ok, err := p.Verify(t.Context(), hash, password); ok != want || err != nil {
				t.Errorf("%q: %v, %v", password, ok, err)
			}
		}
	})
	t.Run("of no account are wrong, and as slow", func(t *testing.T) {
		fastest := func(hash string) time.Duration {
			least := time.Hour
			for range 5 {
				began := time.Now()
				if ok, err := p.Verify(t.Context(), hash, "wrong"); ok || err != nil {
					t.Fatalf("%v, %v", ok, err)
				}
				least = min(least, time.Since(began))
			}
			return least
		}
		known, unknown := fastest(hash), fastest("")
		if unknown < known/3 || known < unknown/3 {
			t.Errorf("%v for an account, %v for none", known, unknown)
		}
	})
	t.Run("with a hash that is none are an error", func(t *testing.T) {
		if ok, err := p.Verify(t.Context(), "secret", "secret"); ok || err == nil || errors.Is(err, auth.ErrBusy) {
			t.Errorf("%v, %v", ok, err)
		}
	})
	t.Run("wait for each other, but not for long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := auth.NewPasswords()
			release := p.Occupy()
			began := time.Now()
			_, err := p.Hash(t.Context(), "correct horse")
			wantCode(t, err, schema.CodeUnavailable)
			if took := time.Since(began); took != 5*time.Second {
				t.Errorf("waited %v", took)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err = p.Hash(ctx, "correct horse")
			wantCode(t, err, schema.CodeUnavailable)
			var waiting sync.WaitGroup
			waiting.Go(func() {
				if ok, err := p.Verify(t.Context(), hash, "correct horse"); !ok || err != nil {
					t.Errorf("after the wait: %v, %v", ok, err)
				}
			})
			time.Sleep(4 * time.Second)
			release()
			waiting.Wait()
		})
	})
	t.Run("are refused at once when too many wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := auth.NewPasswords()
			release := p.Occupy()
			var waiting sync.WaitGroup
			for range auth.MaxWaiting * 2 {
				waiting.Go(func() { _, _ = p.Hash(t.Context(), "correct horse") })
			}
			synctest.Wait()
			if n := p.Waiting(); n < auth.MaxWaiting || n >= auth.MaxWaiting*2 {
				t.Errorf("%d wait", n)
			}
			began := time.Now()
			_, err := p.Hash(t.Context(), "correct horse")
			if !errors.Is(err, auth.ErrBusy) || time.Since(began) > 0 {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			waiting.Wait() // their time runs out
			release()
		})
	})
}
