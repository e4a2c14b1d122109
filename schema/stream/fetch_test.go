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
	"linkstream/schema/testkit"
)

func TestProduceThenFetch(t *testing.T) {
	t.Parallel()
	client := streamtest.StartBroker(t).CreateTopics(2)

	t.Run("values keep their order and get offsets from 0 and the batch's timestamp", func(t *testing.T) {
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
		testkit.Equal(t, "values", got, append(numbered("a", 100), numbered("b", 50)...))
	})
	t.Run("partitions are separate", func(t *testing.T) {
		produce(t, client, 1, "other")
		testkit.Equal(t, "values", fetch(t, client, 1, 0, 1), []string{"other"})
	})
	t.Run("values may be empty or hold any bytes", func(t *testing.T) {
		values := []string{"", "\x00", "\xff\xfe", "", strings.Repeat("x", 4096)}
		_, end := offsets(t, client, 0)
		produce(t, client, 0, values...)
		testkit.Equal(t, "values", fetch(t, client, 0, end, len(values)), values)
	})
	t.Run("a batch just below the broker's limit is accepted", func(t *testing.T) {
		noise := make([]byte, 1<<20-200) // random bytes do not compress
		rand.NewChaCha8([32]byte{1}).Read(noise)
		_, end := offsets(t, client, 0)
		produce(t, client, 0, string(noise))
		testkit.Equal(t, "values", fetch(t, client, 0, end, 1), []string{string(noise)})
	})
	t.Run("a batch above the broker's limit is refused", func(t *testing.T) {
		noise := make([]byte, 2<<20)
		rand.NewChaCha8([32]byte{2}).Read(noise)
		if err := client.Produce(t.Context(), 0, batchOf(string(noise))); err == nil {
			t.Error("got no error")
		}
	})
	t.Run("the limit applies to the compressed size", func(t *testing.T) {
		long := strings.Repeat("linkstream", 400_000)
		_, end := offsets(t, client, 0)
		produce(t, client, 0, long)
		testkit.Equal(t, "values", fetch(t, client, 0, end, 1), []string{long})
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

func offsets(t testing.TB, client *stream.Client, partition int) (start, end int64) {
	t.Helper()
	start, end, err := client.Offsets(t.Context(), partition)
	testkit.Must(t, err)
	return start, end
}

func TestFetch(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client := broker.CreateTopics(1)
	values := numbered("v", 30)
	for i := 0; i < len(values); i += 10 {
		produce(t, client, 0, values[i:i+10]...)
	}

	t.Run("records of a batch before the requested offset are skipped", func(t *testing.T) {
		for _, offset := range []int64{0, 1, 9, 10, 15, 29} {
			testkit.Equal(t, "values", fetch(t, client, 0, offset, 30-int(offset)), values[offset:])
		}
	})
	t.Run("at the end it waits and returns no record", func(t *testing.T) {
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
	t.Run("it returns as soon as a record arrives", func(t *testing.T) {
		_, end := offsets(t, client, 0)
		got := make(chan string, 1)
		go func() {
			client.Fetch(t.Context(), 0, end, 4*time.Second, func(r stream.Record) error {
				got <- string(r.Value)
				return nil
			})
			close(got)
		}()
		produce(t, client, 0, "new")
		if v := <-got; v != "new" {
			t.Errorf("got %q", v)
		}
	})
	t.Run("an error of the callback ends it and is returned", func(t *testing.T) {
		stop, n := errors.New("stop"), 0
		_, end := offsets(t, client, 0)
		lag, err := client.Fetch(t.Context(), 0, 5, time.Second, func(stream.Record) error {
			if n++; n == 3 {
				return stop
			}
			return nil
		})
		if !errors.Is(err, stop) || n != 3 || lag != end-7 {
			t.Errorf("got lag %d and %v after %d records; want lag %d", lag, err, n, end-7)
		}
	})
	t.Run("it ends with its context", func(t *testing.T) {
		_, end := offsets(t, client, 0)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := client.Fetch(ctx, 0, end, time.Second, discard)
			failed <- err
		}()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an offset after the end is out of range", func(t *testing.T) {
		_, end := offsets(t, client, 0)
		if _, err := client.Fetch(t.Context(), 0, end+1, shortWait, discard); !errors.Is(err, stream.ErrOffsetOutOfRange) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an offset before the log start offset is out of range", func(t *testing.T) {
		testkit.Must(t, broker.DeleteRecords(stream.DefaultConfig().Clicks, 0, 20))
		if start, _ := offsets(t, client, 0); start != 20 {
			t.Fatalf("the log start offset is %d, want 20", start)
		}
		if _, err := client.Fetch(t.Context(), 0, 19, shortWait, discard); !errors.Is(err, stream.ErrOffsetOutOfRange) {
			t.Errorf("got %v", err)
		}
		testkit.Equal(t, "values", fetch(t, client, 0, 20, 11), append(values[20:], "new"))
	})
}

func TestFetchReportsLag(t *testing.T) {
	t.Parallel()
	client := streamtest.StartBroker(t).CreateTopics(1)
	// Random bytes do not compress, so a fetch has room for one batch.
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
	client := broker.CreateTopics(2)
	check := func(partition int, wantStart, wantEnd int64) {
		t.Helper()
		if start, end := offsets(t, client, partition); start != wantStart || end != wantEnd {
			t.Errorf("partition %d: got %d to %d, want %d to %d", partition, start, end, wantStart, wantEnd)
		}
	}
	check(0, 0, 0)
	produce(t, client, 1, numbered("v", 12)...)
	check(0, 0, 0)
	check(1, 0, 12)
	testkit.Must(t, broker.DeleteRecords(stream.DefaultConfig().Clicks, 1, 5))
	check(1, 5, 12)
	testkit.Must(t, broker.DeleteRecords(stream.DefaultConfig().Clicks, 1, -1))
	check(1, 12, 12)
}

func TestProduceDeadAppendsToTheDeadLetterTopic(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client := broker.CreateTopics(2)
	testkit.Must(t, client.ProduceDead(t.Context(), batchOf("not", "\x00a", "click")))
	cfg := broker.Config(1)
	cfg.Clicks, cfg.Dead = cfg.Dead, cfg.Clicks
	testkit.Equal(t, "values", fetch(t, streamtest.NewClient(t, cfg), 0, 0, 3), []string{"not", "\x00a", "click"})
	if _, end := offsets(t, client, 0); end != 0 {
		t.Errorf("the clicks topic has %d records", end)
	}
}
