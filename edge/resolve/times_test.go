package resolve_test

import (
	"sync"
	"testing"

	"linkstream/edge/resolve"
	"linkstream/schema/testkit"
)

func TestTimes(t *testing.T) {
	const setBytes = 64
	want := func(t *testing.T, table *resolve.Times, hash, check uint64, until int64) {
		t.Helper()
		got, ok := resolve.GetTime(table, hash, check)
		testkit.Equal(t, "time", got, until)
		testkit.Equal(t, "has a time", ok, until != 0)
	}
	t.Run("a key has the time that was put last, until it is cleared", func(t *testing.T) {
		table := resolve.NewTimes(1 << 10)
		for _, hash := range []uint64{0, 1 << 40, 1<<64 - 1} {
			want(t, table, hash, 7, 0)
			resolve.PutTime(table, hash, 7, 100)
			resolve.PutTime(table, hash, 7, 50)
			resolve.PutTime(table, hash, 8, 60)
			want(t, table, hash, 7, 50)
			resolve.ClearTime(table, hash, 7)
			want(t, table, hash, 7, 0)
			want(t, table, hash, 8, 60)
		}
	})
	t.Run("the earliest time makes room", func(t *testing.T) {
		table := resolve.NewTimes(setBytes)
		for check, until := range []int64{40, 10, 30, 20} {
			resolve.PutTime(table, 0, uint64(check), until)
		}
		resolve.PutTime(table, 1, 9, 50)
		for check, until := range []int64{40, 0, 30, 20} {
			want(t, table, 2, uint64(check), until)
		}
		want(t, table, 3, 9, 50)
	})
	t.Run("a cleared key makes room first", func(t *testing.T) {
		table := resolve.NewTimes(setBytes)
		for check := range uint64(4) {
			resolve.PutTime(table, 0, check, int64(check)+1)
		}
		resolve.ClearTime(table, 0, 3)
		resolve.PutTime(table, 0, 9, 50)
		want(t, table, 0, 0, 1)
	})
	t.Run("a reader gets no time of another key", func(t *testing.T) {
		table := resolve.NewTimes(setBytes)
		const keys, rounds = 10, 20_000
		done := make(chan struct{})
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					for check := range uint64(keys) {
						if until, ok := resolve.GetTime(table, 0, check); ok && uint64(until)%keys != check {
							t.Errorf("key %d has the time %d", check, until)
							return
						}
					}
				}
			})
		}
		for i := range int64(rounds) {
			resolve.PutTime(table, 0, uint64(i%keys), i+keys*keys)
		}
		close(done)
		readers.Wait()
	})
}
