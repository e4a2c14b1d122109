package stream_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"linkstream/deploy/testengines/enginetest"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
)

func TestUncounted(t *testing.T) {
	t.Parallel()
	t.Run("on the embedded broker", func(t *testing.T) {
		t.Parallel()
		saysWhatWaits(t, streamtest.StartBroker(t).Config(3))
	})
	t.Run("on Kafka", func(t *testing.T) {
		t.Parallel()
		cfg := stream.DefaultConfig()
		cfg.Brokers, cfg.Partitions = engines.Kafka(t), 3
		cfg.Clicks, cfg.Dead, cfg.Changes = enginetest.Name(), enginetest.Name(), enginetest.Name()
		cfg.Group = enginetest.Name()
		saysWhatWaits(t, cfg)
	})
}

// store is how far a click store says the partitions are counted, and how often it was asked.
type store struct {
	next  []int64
	asked int
	err   error
}

func (s *store) position(_ context.Context, partition int) (int64, error) {
	s.asked++
	return s.next[partition], s.err
}

func (s *store) wants(t *testing.T, client *stream.Client, records int64, oldest time.Time) {
	t.Helper()
	got, at, err := client.Lag(t.Context(), s.position)
	if err != nil || got != records || !at.Equal(oldest) {
		t.Errorf("got %d records since %v, error %v; want %d since %v", got, at, err, records, oldest)
	}
}

func saysWhatWaits(t *testing.T, cfg stream.Config) {
	client := streamtest.NewClient(t, cfg)
	counted := &store{next: make([]int64, 3)}
	if _, _, err := client.Lag(t.Context(), counted.position); !errors.Is(err, kafka.UnknownTopicOrPartition) {
		t.Fatalf("without the topic: %v", err)
	}
	if err := client.EnsureTopics(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A broker may have to make its own topic of the groups' offsets first.
	streamtest.Succeeds(t, func() error { _, _, err := client.Lag(t.Context(), counted.position); return err })
	counted.wants(t, client, 0, time.Time{})

	at := func(partition int, seconds int, values ...string) {
		t.Helper()
		batch := batchOf(values...)
		batch.Time = epoch.Add(time.Duration(seconds) * time.Second)
		if err := client.Produce(t.Context(), partition, batch); err != nil {
			t.Fatal(err)
		}
	}
	at(0, 1, numbered("a", 10)...)
	at(1, 5, numbered("b", 4)...)
	at(0, 9, numbered("c", 10)...)
	after := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

	counted.wants(t, client, 24, after(1))
	counted.next = []int64{3, 0, 0} // in the midst of a batch
	counted.wants(t, client, 21, after(1))
	counted.next = []int64{10, 0, 0}
	counted.wants(t, client, 14, after(5))
	counted.next = []int64{19, 4, 0}
	counted.wants(t, client, 1, after(9))
	counted.next = []int64{20, 4, 0}
	counted.wants(t, client, 0, time.Time{})
	counted.next = []int64{99, 99, 99} // of an earlier topic
	counted.wants(t, client, 0, time.Time{})

	// Of what was dropped behind the last counted click the store knows nothing: the group does.
	counted.next = []int64{12, 3, 0}
	counted.wants(t, client, 9, after(5))
	commit(t, cfg, map[int]int64{0: 15, 1: 4})
	counted.wants(t, client, 5, after(9))
	commit(t, cfg, map[int]int64{0: 20, 1: 4, 2: 0})
	counted.asked = 0
	counted.wants(t, client, 0, time.Time{})
	if counted.asked > 0 {
		t.Errorf("the store was asked %d times though the group is at the end", counted.asked)
	}
	commit(t, cfg, map[int]int64{0: 99, 1: 2}) // beyond the end: of an earlier topic
	counted.wants(t, client, 9, after(5))

	counted.err = errors.New("the store is down")
	if _, _, err := client.Lag(t.Context(), counted.position); !errors.Is(err, counted.err) {
		t.Errorf("got %v, want the store's error", err)
	}
}

// commit sets what the group, which has no members, has committed.
func commit(t *testing.T, cfg stream.Config, next map[int]int64) {
	t.Helper()
	transport := new(kafka.Transport)
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(cfg.Brokers), Transport: transport}
	var commits []kafka.OffsetCommit
	for partition, offset := range next {
		commits = append(commits, kafka.OffsetCommit{Partition: partition, Offset: offset})
	}
	streamtest.Succeeds(t, func() error {
		res, err := client.OffsetCommit(t.Context(), &kafka.OffsetCommitRequest{GroupID: cfg.Group, GenerationID: -1,
			Topics: map[string][]kafka.OffsetCommit{cfg.Clicks: commits}})
		if err != nil {
			return err
		}
		for _, p := range res.Topics[cfg.Clicks] {
			err = errors.Join(err, p.Error)
		}
		return err
	})
}

func TestUncountedPassesWhatWasDeleted(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client := broker.Topics(1)
	produce(t, client, 0, numbered("v", 12)...)
	if err := broker.DeleteRecords(stream.DefaultConfig().Clicks, 0, 5); err != nil {
		t.Fatal(err)
	}
	counted := &store{next: []int64{2}}
	counted.wants(t, client, 7, epoch)
	if err := broker.DeleteRecords(stream.DefaultConfig().Clicks, 0, -1); err != nil {
		t.Fatal(err)
	}
	counted.wants(t, client, 0, time.Time{})
}
