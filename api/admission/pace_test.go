package admission_test

import (
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/admission"
	"linkstream/schema/testkit"
)

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := admission.NewPace[int](10, 2*time.Second)
		allowed := func(who, times int) (n int) {
			for range times {
				if p.Allow(who) {
					n++
				}
			}
			return n
		}
		testkit.Equal(t, "at once", allowed(1, 100), 20)
		testkit.Equal(t, "of another one", allowed(2, 5), 5)
		time.Sleep(500 * time.Millisecond)
		testkit.Equal(t, "after half a second", allowed(1, 100), 5)
		time.Sleep(time.Hour)
		testkit.Equal(t, "after a quiet time", allowed(1, 100), 20)
		testkit.Equal(t, "kept", p.Kept(), 1) // who owed nothing was forgotten
		for who := range 2 * admission.MaxPaced {
			if !p.Allow(10 + who) {
				t.Fatalf("%d is refused", who)
			}
		}
		testkit.Equal(t, "kept", p.Kept(), admission.MaxPaced)
		testkit.Equal(t, "of one who is kept", allowed(1, 100), 0)
	})
}
