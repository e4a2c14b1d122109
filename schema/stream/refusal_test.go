package stream_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

func TestProduceSaysWhatARepetitionDoesNotResolve(t *testing.T) {
	t.Parallel()
	t.Run("a batch that is too large", func(t *testing.T) {
		t.Parallel()
		broker := streamtest.StartBroker(t)
		createTopic(t, broker, map[string]string{"max.message.bytes": "1000"})
		client := streamtest.NewClient(t, broker.Config(1))
		noise := make([]byte, 2000) // does not compress
		for i := range noise {
			noise[i] = byte(rand.Uint32())
		}
		if err := client.Produce(t.Context(), 0, batchOf(string(noise))); !errors.Is(err, stream.ErrRefused) {
			t.Errorf("error %v", err)
		}
		testkit.Must(t, client.Produce(t.Context(), 0, batchOf(string(noise[:500]))))
	})
	t.Run("a partition that the topic does not have", func(t *testing.T) {
		t.Parallel()
		client := streamtest.StartBroker(t).CreateTopics(2)
		for _, partition := range []int{2, 100} {
			if err := client.Produce(t.Context(), partition, batchOf("x")); !errors.Is(err, stream.ErrNoPartition) {
				t.Errorf("error %v", err)
			}
		}
	})
	t.Run("a time that the broker refuses", func(t *testing.T) {
		t.Parallel()
		broker := streamtest.StartBroker(t)
		client := broker.CreateTopics(1)
		broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.InvalidTimestamp})
		err := client.Produce(t.Context(), 0, batchOf("x"))
		if !errors.Is(err, kafka.InvalidTimestamp) || !strings.Contains(err.Error(), "clock") {
			t.Errorf("error %v", err)
		}
	})
}

func TestABatchMayGetAnotherTime(t *testing.T) {
	t.Parallel()
	client := streamtest.StartBroker(t).CreateTopics(1)
	batch := batchOf("a", "b")
	tomorrow := time.Now().Add(24 * time.Hour).Truncate(time.Millisecond)
	for _, at := range []time.Time{tomorrow, tomorrow.Add(-48 * time.Hour)} {
		batch.SetTime(at)
		testkit.Must(t, client.Produce(t.Context(), 0, batch))
		var times []time.Time
		_, end, err := client.Offsets(t.Context(), 0)
		testkit.Must(t, err)
		_, err = client.Fetch(t.Context(), 0, end-2, shortWait, func(r stream.Record) error {
			times = append(times, r.Time)
			return nil
		})
		testkit.Must(t, err)
		testkit.Equal(t, "times", times, []time.Time{at, at})
	}
}

// A record on one broker only is lost with the broker's disk.
func TestProduceWaitsForAllReplicas(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client := broker.CreateTopics(1)
	acks := make(chan int16, 10)
	broker.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		acks <- r.(*kmsg.ProduceRequest).Acks
		return nil, nil, false
	})
	produce(t, client, 0, "click")
	testkit.Must(t, client.ProduceDead(t.Context(), batchOf("not a click")))
	for range 2 {
		testkit.Equal(t, "acks", <-acks, -1)
	}
}

// createTopic creates the clicks topic as an operator does.
func createTopic(t testing.TB, broker *streamtest.Broker, configs map[string]string) {
	t.Helper()
	testkit.Must(t, broker.CreateTopic(stream.DefaultConfig().Clicks, 1, configs))
}
