package turns_test

import (
	"testing"
	"testing/synctest"
	"time"

	"linkstream/schema/testkit"
	"linkstream/schema/turns"
)

func TestBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := turns.NewBucket(10, 2*time.Second)
		took := func(id int64, times int) (n int) {
			for range times {
				if b.Take(turns.Account(id)) {
					n++
				}
			}
			return n
		}
		testkit.Equal(t, "at once", took(1, 100), 20)
		testkit.Equal(t, "of another client", took(2, 5), 5)
		time.Sleep(500 * time.Millisecond)
		testkit.Equal(t, "after half a second", took(1, 100), 5)
		time.Sleep(time.Hour)
		testkit.Equal(t, "after a quiet time", took(1, 100), 20)
		const kept = 65_536
		before := testkit.Heap()
		for id := range int64(kept - 1) {
			if !b.Take(turns.Account(10 + id)) {
				t.Fatalf("%d is refused", id)
			}
		}
		more := 0
		for id := range int64(4 * kept) {
			more += took(10+kept+id, 1)
		}
		testkit.Equal(t, "of all clients beyond, together", more, 20)
		testkit.Equal(t, "debt of one of them", b.Debt(turns.Account(-1), time.Now()), 2*time.Second)
		if grown := testkit.Heap() - before; grown > 10<<20 { // all clients would take about 20 MiB
			t.Errorf("the heap grew by %d bytes", grown)
		}
		testkit.Equal(t, "of a client that is kept", took(1, 100), 0)
		testkit.Equal(t, "of another one", took(10, 100), 19)
		time.Sleep(time.Hour)
		for id := range 2 { // clients without debts are forgotten
			testkit.Equal(t, "of one of them, after a quiet time", took(int64(10+kept+id), 100), 20)
		}
	})
}

func TestReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := turns.NewBucket(10, 2*time.Second), turns.Client{}
		for range 20 {
			testkit.Equal(t, "wait at once", b.Reserve(c), 0)
		}
		for n := range 5 {
			testkit.Equal(t, "wait", b.Reserve(c), time.Duration(n+1)*100*time.Millisecond)
		}
		time.Sleep(500 * time.Millisecond)
		testkit.Equal(t, "wait later", b.Reserve(c), 100*time.Millisecond)
	})
}

func TestCharge(t *testing.T) {
	b, c, now := turns.NewBucket(10, 2*time.Second), turns.Account(1), time.Now()
	for n := range 20 {
		testkit.Equal(t, "wait", b.Wait(c, now), 0)
		b.Charge(c, now)
		testkit.Equal(t, "debt", b.Debt(c, now), time.Duration(n+1)*100*time.Millisecond)
	}
	testkit.Equal(t, "wait with the debt of the whole time", b.Wait(c, now), 1)
	testkit.Equal(t, "wait of another client", b.Wait(turns.Account(2), now), 0)
	now = now.Add(50 * time.Millisecond)
	testkit.Equal(t, "wait with less", b.Wait(c, now), 0)
	for range 100 {
		b.Charge(c, now)
	}
	testkit.Equal(t, "wait with the largest debt", b.Wait(c, now), 2*time.Second+1)
}
