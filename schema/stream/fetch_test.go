package stream_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	client := streamtest.StartBroker(t).Topics(2)

	t.Run("values come back in order, with offsets from 0 and the batch's time", func(t *testing.T) {
		produce(t, client, 0, numbered("a", 100)...)
		produce(t, client, 0, numbered("b", 50)...)
		var got []string
		lag, err := client.Fetch(t.Context(), 0, 0, time.Second, func(r stream.Record) error {
			if r.Offset != int64(len(got)) || !r.Time.Equal(epoch) {
				t.Errorf("record %d has offset %d and time %v", len(got), r.Offset, r.Time)
			}
			got = append(got, string(r.Value))
			return nil
		})
		if err != nil || lag != 0 {
			t.Fatalf("got lag %d, error %v", lag, err)
		}
		wantValues(t, got, append(numbered("a", 100), numbered("b", 50)...))
	})
	t.Run("partitions are apart", func(t *testing.T) {
		produce(t, client, 1, "other")
		wantValues(t, fetch(t, client, 1, 0, 1), []string{"other"})
	})
	t.Run("empty values and values of any bytes are kept", func(t *testing.T) {
		values := []string{"", "\x00", "\xff\xfe", "", strings.Repeat("x", 4096)}
		_, next := offsets(t, client, 0)
		produce(t, client, 0, values...)
		wantValues(t, fetch(t, client, 0, next, len(values)), values)
	})
	t.Run("a value near the broker's limit is kept", func(t *testing.T) {
		noise := make([]byte, 1<<20-200) // random, so that compression does not help
		rand.NewChaCha8([32]byte{1}).Read(noise)
		_, next := offsets(t, client, 0)
		produce(t, client, 0, string(noise))
		wantValues(t, fetch(t, client, 0, next, 1), []string{string(noise)})
	})
	t.Run("a value above the broker's limit is refused", func(t *testing.T) {
		noise := make([]byte, 2<<20)
		rand.NewChaCha8([32]byte{2}).Read(noise)
		if err := client.Produce(t.Context(), 0, batchOf(string(noise))); err == nil {
			t.Error("got no error")
		}
	})
	t.Run("what compresses well may be larger than the limit", func(t *testing.T) {
		long := strings.Repeat("linkstream", 400_000)
		_, next := offsets(t, client, 0)
		produce(t, client, 0, long)
		wantValues(t, fetch(t, client, 0, next, 1), []string{long})
	})
	t.Run("a partition that does not exist is an error", func(t *testing.T) {
		if err := client.Produce(t.Context(), 7, batchOf("x")); err == nil {
			t.Error("Produce: got no error")
		}
		if _, err := client.Fetch(t.Context(), 7, 0, shortWait, discard); err == nil {
			t.Error("Fetch: got no error")
		}
		if _, _, err := client.Offsets(t.Context(), 7); err == nil {
			t.Error("Offsets: got no error")
		}
	})
}

func discard(stream.Record) error { return nil }

func offsets(t testing.TB, client *stream.Client, partition int) (first, next int64) {
	t.Helper()
	first, next, err := client.Offsets(t.Context(), partition)
	if err != nil {
		t.Fatal(err)
	}
	return first, next
}

func TestFetch(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client := broker.Topics(1)
	values := numbered("v", 30)
	for i := 0; i < len(values); i += 10 {
		produce(t, client, 0, values[i:i+10]...)
	}

	t.Run("skips the records of a batch before the offset asked for", func(t *testing.T) {
		for _, offset := range []int64{0, 1, 9, 10, 15, 29} {
			wantValues(t, fetch(t, client, 0, offset, 30-int(offset)), values[offset:])
		}
	})
	t.Run("waits, and returns nothing at the end", func(t *testing.T) {
		began := time.Now()
		lag, err := client.Fetch(t.Context(), 0, 30, shortWait, func(stream.Record) error {
			t.Error("got a record")
			return nil
		})
		if err != nil || lag != 0 {
			t.Errorf("got lag %d, error %v", lag, err)
		}
		if waited := time.Since(began); waited < shortWait {
			t.Errorf("waited %v, want at least %v", waited, shortWait)
		}
	})
	t.Run("returns as soon as there is a record", func(t *testing.T) {
		_, next := offsets(t, client, 0)
		got := make(chan string, 1)
		go func() {
			client.Fetch(t.Context(), 0, next, 4*time.Second, func(r stream.Record) error {
				got <- string(r.Value)
				return nil
			})
			close(got)
		}()
		produce(t, client, 0, "awaited")
		if v := <-got; v != "awaited" {
			t.Errorf("got %q", v)
		}
	})
	t.Run("an error of the callback ends it, and is what it returns", func(t *testing.T) {
		stop, n := errors.New("stop"), 0
		_, next := offsets(t, client, 0)
		lag, err := client.Fetch(t.Context(), 0, 5, time.Second, func(stream.Record) error {
			if n++; n == 3 {
				return stop
			}
			return nil
		})
		if !errors.Is(err, stop) || n != 3 || lag != next-7 {
			t.Errorf("got lag %d and %v after %d records; want lag %d", lag, err, n, next-7)
		}
	})
	t.Run("ends when its context does", func(t *testing.T) {
		_, next := offsets(t, client, 0)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := client.Fetch(ctx, 0, next, time.Second, discard)
			failed <- err
		}()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an offset beyond the end is out of range", func(t *testing.T) {
		_, next := offsets(t, client, 0)
		if _, err := client.Fetch(t.Context(), 0, next+1, shortWait, discard); !errors.Is(err, stream.ErrOffsetOutOfRange) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an offset whose record was deleted is out of range", func(t *testing.T) {
		if err := broker.DeleteRecords(stream.DefaultConfig().Clicks, 0, 20); err != nil {
			t.Fatal(err)
		}
		if first, _ := offsets(t, client, 0); first != 20 {
			t.Fatalf("the first offset is %d, want 20", first)
		}
		if _, err := client.Fetch(t.Context(), 0, 19, shortWait, discard); !errors.Is(err, stream.ErrOffsetOutOfRange) {
			t.Errorf("got %v", err)
		}
		wantValues(t, fetch(t, client, 0, 20, 11), append(values[20:], "awaited"))
	})
}

func TestFetchReportsLag(t *testing.T) {
	t.Parallel()
	client := streamtest.StartBroker(t).Topics(1)
	// Two batches that cannot share a fetch's bytes, since noise does not compress.
	noise := make([]byte, 900<<10)
	for i := range uint8(8) {
		rand.NewChaCha8([32]byte{i}).Read(noise)
		produce(t, client, 0, string(noise), "after")
	}
	read := 0
	lag, err := client.Fetch(t.Context(), 0, 0, time.Second, func(stream.Record) error { read++; return nil })
	if err != nil || read == 0 || read >= 16 || lag != int64(16-read) {
		t.Errorf("read %d of 16 records with lag %d, error %v", read, lag, err)
	}
}

func TestOffsets(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client := broker.Topics(2)
	check := func(partition int, wantFirst, wantNext int64) {
		t.Helper()
		if first, next := offsets(t, client, partition); first != wantFirst || next != wantNext {
			t.Errorf("partition %d: got %d to %d, want %d to %d", partition, first, next, wantFirst, wantNext)
		}
	}
	check(0, 0, 0)
	produce(t, client, 1, numbered("v", 12)...)
	check(0, 0, 0)
	check(1, 0, 12)
	if err := broker.DeleteRecords(stream.DefaultConfig().Clicks, 1, 5); err != nil {
		t.Fatal(err)
	}
	check(1, 5, 12)
	if err := broker.DeleteRecords(stream.DefaultConfig().Clicks, 1, -1); err != nil {
		t.Fatal(err)
	}
	check(1, 12, 12)
}

func TestProduceDead(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client := broker.Topics(2)
	if err := client.ProduceDead(t.Context(), batchOf("not", "\x00a", "click")); err != nil {
		t.Fatal(err)
	}
	cfg := broker.Config(1)
	cfg.Clicks, cfg.Dead = cfg.Dead, cfg.Clicks
	wantValues(t, fetch(t, streamtest.NewClient(t, cfg), 0, 0, 3), []string{"not", "\x00a", "click"})
	if _, next := offsets(t, client, 0); next != 0 {
		t.Errorf("the topic of clicks has %d records", next)
	}
}
