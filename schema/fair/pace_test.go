package fair_test

import (
	"testing"
	"testing/synctest"
	"time"

	"linkstream/schema/fair"
	"linkstream/schema/testkit"
)

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fair.NewPace[int](10, 2*time.Second)
		allowed := func(client, times int) (n int) {
			for range times {
				if p.Allow(client) {
					n++
				}
			}
			return n
		}
		testkit.Equal(t, "at once", allowed(1, 100), 20)
		testkit.Equal(t, "of another client", allowed(2, 5), 5)
		time.Sleep(500 * time.Millisecond)
		testkit.Equal(t, "after half a second", allowed(1, 100), 5)
		time.Sleep(time.Hour)
		testkit.Equal(t, "after a quiet time", allowed(1, 100), 20)
		testkit.Equal(t, "kept: clients without debts are forgotten", p.Kept(), 1)
		for client := range 2 * fair.MaxPaced {
			if !p.Allow(10 + client) {
				t.Fatalf("%d is refused", client)
			}
		}
		testkit.Equal(t, "kept", p.Kept(), fair.MaxPaced)
		testkit.Equal(t, "of a client that is kept", allowed(1, 100), 0)
	})
}
