package ingestservice_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"linkstream/ingest/ingestservice"
	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

const link = 42

// blockingStore blocks each insert until the test lets it go on. It ignores the end of the worker's context, like an
// engine that has already received the insert.
type blockingStore struct {
	schema.PositionStore
	began   chan struct{} // receives when an insert begins
	outcome chan error    // of the insert: nil inserts the batch, an error is returned without an insert
}

func (s *blockingStore) InsertClicks(_ context.Context, batch *schema.ClickBatch) error {
	s.began <- struct{}{}
	if err := <-s.outcome; err != nil {
		return err
	}
	return s.PositionStore.InsertClicks(context.Background(), batch)
}

// running is a service that runs in a goroutine.
type running struct {
	*ingestservice.Service
	stop func()
	done chan error
}

func openStore(t *testing.T) schema.PositionStore {
	return storetest.NewPositioned(sqlitetest.NewClickStore(t))
}

func start(t *testing.T, store schema.PositionStore, client *stream.Client) *running {
	t.Helper()
	cfg := ingestservice.DefaultConfig()
	log := new(testkit.Buffer)
	s, err := ingestservice.New(cfg, store, client, log.Logger())
	testkit.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r := &running{Service: s, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx) }()
	return r
}

// awaitEnd waits until Run returns nil.
func (r *running) awaitEnd(t *testing.T) {
	t.Helper()
	select {
	case err := <-r.done:
		testkit.Must(t, err)
	case <-time.After(testkit.Patience):
		t.Fatal("Run does not return")
	}
}

func produceClicks(t *testing.T, client *stream.Client, n uint64) {
	t.Helper()
	var batch stream.Batch
	for seq := uint64(1); seq <= n; seq++ {
		batch.Append(nil, schema.AppendClick(nil, &schema.Click{Lane: schema.Lane{Number: 1}, Seq: seq, LinkID: link,
			ClickedAt: time.Now()}))
	}
	testkit.Must(t, client.Produce(t.Context(), 0, &batch))
}

func total(t *testing.T, store schema.ClickStore) int64 {
	t.Helper()
	counts, err := store.ClickCounts(t.Context(), 1, []int64{link})
	testkit.Must(t, err)
	return counts[link]
}

// A service stops while an insert is under way.
func TestShutdown(t *testing.T) {
	const clicks = 100
	for name, c := range map[string]struct {
		outcome error // of the insert
		counted int64 // by the stopped service
	}{
		"an insert that succeeds is counted, and not repeated": {nil, clicks},
		"an insert that fails is repeated by the next service": {errors.New("the store is down"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := streamtest.StartBroker(t)
			client, store := broker.CreateTopics(1), openStore(t)
			committed := func() int64 { return streamtest.CommittedOffsets(t, broker.Config(1), 1)[0] }
			produceClicks(t, client, clicks)
			blocking := &blockingStore{store, make(chan struct{}), make(chan error)}
			s := start(t, blocking, client)
			<-blocking.began
			testkit.Equal(t, "committed offset during the insert", committed(), -1)

			// Operators see that the service has left the group, while its insert goes on.
			s.stop()
			testkit.Succeeds(t, func() error {
				err := s.Ready(t.Context())
				if unready := new(service.Unready); errors.As(err, &unready) && strings.Contains(err.Error(), "consumer group") {
					return nil
				}
				return fmt.Errorf("ready: %v", err)
			})
			select {
			case err := <-s.done:
				t.Fatalf("Run returned %v during an insert", err)
			default:
			}

			blocking.outcome <- c.outcome
			s.awaitEnd(t)
			testkit.Equal(t, "clicks counted by the stopped service", total(t, store), c.counted)
			if got := committed(); got > c.counted {
				t.Errorf("offset %d is committed, %d clicks are counted", got, c.counted)
			}

			next := start(t, store, client)
			testkit.Succeeds(t, func() error {
				if got := committed(); got != clicks {
					return fmt.Errorf("offset %d is committed, want %d", got, clicks)
				}
				return nil
			})
			testkit.Equal(t, "clicks counted by both services", total(t, store), clicks)
			next.stop()
			next.awaitEnd(t)
		})
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	s := start(t, openStore(t), streamtest.StartBroker(t).CreateTopics(1))
	testkit.Succeeds(t, func() error { return s.Ready(t.Context()) })
	var page strings.Builder
	s.Metrics().WritePrometheus(&page)
	if !strings.Contains(page.String(), "linkstream_ingest_partitions 1\n") {
		t.Errorf("metrics:\n%s", &page)
	}
	s.stop()
	s.awaitEnd(t)
}
