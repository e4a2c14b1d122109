package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
)

// crew is the members of one group. It fails the test where two of them work on a partition at the same time.
type crew struct {
	t       testing.TB
	mu      sync.Mutex
	holders map[int]string // by partition, the member that works on it
	commits map[int]func(int64) error
	ended   int
	shares  map[string]int // how many partitions those have who are members at the moment
}

func newCrew(t testing.TB) *crew {
	return &crew{t: t, holders: map[int]string{}, commits: map[int]func(int64) error{}, shares: map[string]int{}}
}

// join starts a member and returns what stops it and waits for Consume to return.
func (c *crew) join(name string, client *stream.Client) (leave func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	done := make(chan error, 1)
	go func() {
		done <- client.Consume(ctx, func(ctx context.Context, n int) { c.member(ctx, name, n) },
			func(ctx context.Context, a stream.Assignment) { c.work(ctx, name, a) })
	}()
	leave = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			c.t.Errorf("%s: Consume returned %v", name, err)
		}
	})
	c.t.Cleanup(leave)
	return leave
}

func (c *crew) member(ctx context.Context, name string, partitions int) {
	c.mu.Lock()
	c.shares[name] = partitions
	c.mu.Unlock()
	<-ctx.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.shares, name)
}

// awaitShares is await for what members are told, also those who have none.
func (c *crew) awaitShares(want map[string]int) {
	c.t.Helper()
	streamtest.Eventually(c.t, func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !maps.Equal(c.shares, want) {
			return fmt.Sprintf("the members are told %v, want %v", c.shares, want)
		}
		return ""
	})
}

func (c *crew) work(ctx context.Context, name string, a stream.Assignment) {
	c.mu.Lock()
	if other, held := c.holders[a.Partition]; held {
		c.t.Errorf("%s got partition %d while %s worked on it", name, a.Partition, other)
	}
	c.holders[a.Partition], c.commits[a.Partition] = name, a.Commit
	c.mu.Unlock()

	<-ctx.Done()
	stream.Sleep(c.t.Context(), shortWait) // what was begun takes a moment to finish
	if ctx.Err() == nil {
		c.t.Errorf("%s: the context of partition %d ended without an error", name, a.Partition)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.holders, a.Partition)
	c.ended++
}

// await waits until the partitions are held as share says: how many each member has.
func (c *crew) await(share map[string]int) {
	c.t.Helper()
	streamtest.Eventually(c.t, func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		got := map[string]int{}
		for _, name := range c.holders {
			got[name]++
		}
		if fmt.Sprint(got) != fmt.Sprint(share) {
			return fmt.Sprintf("the members hold %v, want %v", got, share)
		}
		return ""
	})
}

func TestConsume(t *testing.T) {
	t.Parallel()
	t.Run("one member gets all partitions, and returns when its context ends", func(t *testing.T) {
		t.Parallel()
		broker := streamtest.StartBroker(t)
		crew := newCrew(t)
		leave := crew.join("only", broker.Topics(3))
		crew.await(map[string]int{"only": 3})
		began := time.Now()
		leave()
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("Consume took %v to return", took)
		}
		if crew.ended != 3 {
			t.Errorf("Consume returned with work on %d of 3 partitions ended", crew.ended)
		}
	})
	t.Run("members share partitions and hand them over", func(t *testing.T) {
		t.Parallel()
		broker := streamtest.StartBroker(t)
		crew := newCrew(t)
		leaveA := crew.join("a", broker.Topics(4))
		crew.await(map[string]int{"a": 4})
		leaveB := crew.join("b", broker.Topics(4))
		crew.await(map[string]int{"a": 2, "b": 2})
		leaveA()
		crew.await(map[string]int{"b": 4})
		leaveB()
	})
	t.Run("a member too many waits for its turn", func(t *testing.T) {
		t.Parallel()
		broker := streamtest.StartBroker(t)
		crew := newCrew(t)
		leaveA := crew.join("a", broker.Topics(1))
		crew.await(map[string]int{"a": 1})
		crew.join("b", broker.Topics(1))
		streamtest.Eventually(t, func() string {
			crew.mu.Lock()
			defer crew.mu.Unlock()
			if len(crew.shares) != 2 || crew.shares["a"]+crew.shares["b"] != 1 {
				return fmt.Sprintf("the members are told %v, want one partition and none", crew.shares)
			}
			return ""
		})
		leaveA()
		crew.await(map[string]int{"b": 1})
		crew.awaitShares(map[string]int{"b": 1})
	})
	t.Run("a member goes on after a restart of the broker", func(t *testing.T) {
		t.Parallel()
		broker := streamtest.StartBroker(t)
		crew := newCrew(t)
		crew.join("a", broker.Topics(2))
		crew.await(map[string]int{"a": 2})
		broker.Stop()
		crew.await(map[string]int{})
		crew.awaitShares(map[string]int{})
		broker.Start()
		crew.await(map[string]int{"a": 2})
	})
	t.Run("returns promptly while the broker is away", func(t *testing.T) {
		t.Parallel()
		broker := streamtest.StartBroker(t)
		crew := newCrew(t)
		leave := crew.join("a", broker.Topics(2))
		crew.await(map[string]int{"a": 2})
		broker.Stop()
		began := time.Now()
		leave()
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("Consume took %v to return", took)
		}
	})
}

func TestConsumeFollowsTheTopic(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	log := new(safeBuffer)
	client, err := stream.New(broker.Config(2), slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	crew := newCrew(t)
	crew.join("a", client)
	streamtest.Eventually(t, func() string { return missing(log.count("joined the consumer group"), 1) })

	// Created after the member joined.
	broker.Topics(2)
	crew.await(map[string]int{"a": 2})

	// Grown.
	admin := &kafka.Client{Addr: kafka.TCP(broker.Addr), Transport: new(kafka.Transport)}
	defer admin.Transport.(*kafka.Transport).CloseIdleConnections()
	res, err := admin.CreatePartitions(t.Context(), &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{
		{Name: stream.DefaultConfig().Clicks, Count: 5}}})
	if err = errors.Join(err, res.Errors[stream.DefaultConfig().Clicks]); err != nil {
		t.Fatal(err)
	}
	crew.await(map[string]int{"a": 5})

	// Deleted.
	if err := broker.DeleteTopic(stream.DefaultConfig().Clicks); err != nil {
		t.Fatal(err)
	}
	crew.await(map[string]int{})

	// Created again.
	broker.Topics(3)
	crew.await(map[string]int{"a": 3})
	if joined := log.count("joined the consumer group"); joined > 10 {
		t.Errorf("the member joined %d times, want 5: one for each state of the topic", joined)
	}
}

// safeBuffer holds what is logged.
type safeBuffer struct {
	mu   sync.Mutex
	text []byte
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	return len(p), nil
}

func (b *safeBuffer) count(text string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(bytes.Count(b.text, []byte(text)))
}

func TestCommitIsSeenByTheGroup(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	crew := newCrew(t)
	crew.join("a", broker.Topics(2))
	crew.await(map[string]int{"a": 2})
	for _, next := range []int64{5, 12, 3} { // a store may have gone back
		if err := crew.commits[1](next); err != nil {
			t.Fatal(err)
		}
		if got := committed(t, broker); !slices.Equal(got, []int64{-1, next}) {
			t.Errorf("committed %v, want none and %d", got, next)
		}
	}
}

// committed returns the group's offsets of partitions 0 and 1, -1 where there is none.
func committed(t testing.TB, broker *streamtest.Broker) []int64 {
	t.Helper()
	cfg := broker.Config(2)
	transport := new(kafka.Transport)
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(broker.Addr), Transport: transport}
	res, err := client.OffsetFetch(t.Context(), &kafka.OffsetFetchRequest{GroupID: cfg.Group,
		Topics: map[string][]int{cfg.Clicks: {0, 1}}})
	if err != nil {
		t.Fatal(err)
	}
	offsets := make([]int64, 2)
	for _, p := range res.Topics[cfg.Clicks] {
		offsets[p.Partition] = p.CommittedOffset
	}
	return offsets
}

// TestConsumeKeepsTrying bounds how long a member takes to notice that the broker is back, however long it was away.
func TestConsumeKeepsTrying(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var attempts atomic.Int64
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			attempts.Add(1)
			conn.Close()
		}
	}()
	defer ln.Close()
	cfg := stream.DefaultConfig()
	cfg.Brokers = ln.Addr().String()
	newCrew(t).join("a", streamtest.NewClient(t, cfg))
	began := time.Now()
	streamtest.Eventually(t, func() string { return missing(attempts.Load(), 10) })
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the tenth attempt came after %v", took)
	}
}

func missing(got, want int64) string {
	if got < want {
		return fmt.Sprintf("got %d of %d", got, want)
	}
	return ""
}
