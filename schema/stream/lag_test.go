package stream_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

func TestLag(t *testing.T) {
	t.Parallel()
	testLag(t, streamtest.StartBroker(t).Config(3))
}

// store stands for the click store's positions.
type store struct {
	next  []int64 // by partition
	calls int
	err   error
}

func (s *store) position(_ context.Context, partition int) (int64, error) {
	s.calls++
	return s.next[partition], s.err
}

func (s *store) wantLag(t *testing.T, client *stream.Client, records int64, oldest time.Time) {
	t.Helper()
	got, at, err := client.Lag(t.Context(), s.position)
	if err != nil || got != records || !at.Equal(oldest) {
		t.Errorf("got lag %d, oldest %v, error %v; want %d, %v", got, at, err, records, oldest)
	}
}

func testLag(t *testing.T, cfg stream.Config) {
	client := streamtest.NewClient(t, cfg)
	counted := &store{next: make([]int64, 3)}
	if _, _, err := client.Lag(t.Context(), counted.position); !errors.Is(err, kafka.UnknownTopicOrPartition) {
		t.Fatalf("without the topic: %v", err)
	}
	testkit.Must(t, client.EnsureTopics(t.Context()))
	// The broker may have to create its __consumer_offsets topic first.
	testkit.Succeeds(t, func() error { _, _, err := client.Lag(t.Context(), counted.position); return err })
	counted.wantLag(t, client, 0, time.Time{})

	produceAt := func(partition int, seconds int, values ...string) {
		t.Helper()
		batch := batchOf(values...)
		batch.Time = epoch.Add(time.Duration(seconds) * time.Second)
		testkit.Must(t, client.Produce(t.Context(), partition, batch))
	}
	produceAt(0, 1, numbered("a", 10)...)
	produceAt(1, 5, numbered("b", 4)...)
	produceAt(0, 9, numbered("c", 10)...)
	at := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

	counted.wantLag(t, client, 24, at(1))
	counted.next = []int64{3, 0, 0} // within a batch
	counted.wantLag(t, client, 21, at(1))
	counted.next = []int64{10, 0, 0}
	counted.wantLag(t, client, 14, at(5))
	counted.next = []int64{19, 4, 0}
	counted.wantLag(t, client, 1, at(9))
	counted.next = []int64{20, 4, 0}
	counted.wantLag(t, client, 0, time.Time{})
	counted.next = []int64{99, 99, 99} // from an earlier topic
	counted.wantLag(t, client, 0, time.Time{})

	// The store's position does not include records that were dropped after the last counted click; the group's offset
	// does.
	counted.next = []int64{12, 3, 0}
	counted.wantLag(t, client, 9, at(5))
	streamtest.CommitOffsets(t, cfg, map[int]int64{0: 15, 1: 4})
	counted.wantLag(t, client, 5, at(9))
	streamtest.CommitOffsets(t, cfg, map[int]int64{0: 20, 1: 4, 2: 0})
	counted.calls = 0
	counted.wantLag(t, client, 0, time.Time{})
	if counted.calls > 0 {
		t.Errorf("Lag read %d positions although the group has committed to the end", counted.calls)
	}
	streamtest.CommitOffsets(t, cfg, map[int]int64{0: 99, 1: 2}) // 99 is beyond the end: from an earlier topic
	counted.wantLag(t, client, 9, at(5))

	counted.err = errors.New("the store is down")
	if _, _, err := client.Lag(t.Context(), counted.position); !errors.Is(err, counted.err) {
		t.Errorf("got %v, want the store's error", err)
	}
}

func TestLagSkipsDeletedRecords(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client := broker.CreateTopics(1)
	produce(t, client, 0, numbered("v", 12)...)
	testkit.Must(t, broker.DeleteRecords(stream.DefaultConfig().Clicks, 0, 5))
	counted := &store{next: []int64{2}}
	counted.wantLag(t, client, 7, epoch)
	testkit.Must(t, broker.DeleteRecords(stream.DefaultConfig().Clicks, 0, -1))
	counted.wantLag(t, client, 0, time.Time{})
}
