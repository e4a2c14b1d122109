package stream_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// members are the members of one consumer group. They fail the test if two of them work on a partition at the same
// time.
type members struct {
	t        testing.TB
	mu       sync.Mutex
	owners   map[int]string // by partition, the member that works on it
	commits  map[int]func(int64) error
	ended    int            // calls of work that have returned
	assigned map[string]int // number of partitions passed to onAssigned, by member
}

func newMembers(t testing.TB) *members {
	return &members{t: t, owners: map[int]string{}, commits: map[int]func(int64) error{}, assigned: map[string]int{}}
}

// join starts a member. leave stops it and waits for Consume to return.
func (m *members) join(name string, client *stream.Client) (leave func()) {
	ctx, cancel := context.WithCancel(m.t.Context())
	done := make(chan error, 1)
	go func() {
		done <- client.Consume(ctx, func(ctx context.Context, n int) { m.onAssigned(ctx, name, n) },
			func(ctx context.Context, a stream.Assignment) { m.work(ctx, name, a) })
	}()
	leave = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			m.t.Errorf("%s: Consume returned %v", name, err)
		}
	})
	m.t.Cleanup(leave)
	return leave
}

func (m *members) onAssigned(ctx context.Context, name string, partitions int) {
	m.mu.Lock()
	m.assigned[name] = partitions
	m.mu.Unlock()
	<-ctx.Done()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.assigned, name)
}

func (m *members) work(ctx context.Context, name string, a stream.Assignment) {
	m.mu.Lock()
	if other, owned := m.owners[a.Partition]; owned {
		m.t.Errorf("%s got partition %d while %s worked on it", name, a.Partition, other)
	}
	m.owners[a.Partition], m.commits[a.Partition] = name, a.Commit
	m.mu.Unlock()

	<-ctx.Done()
	stream.Sleep(m.t.Context(), shortWait) // a batch under way takes a moment to finish
	if ctx.Err() == nil {                  // kafka-go has its own context type
		m.t.Errorf("%s: the context of partition %d is done without an error", name, a.Partition)
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.owners, a.Partition)
	m.ended++
}

// awaitAssigned waits until onAssigned has been called with these numbers, also for members without a partition.
func (m *members) awaitAssigned(want map[string]int) {
	m.t.Helper()
	testkit.Succeeds(m.t, func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !maps.Equal(m.assigned, want) {
			return fmt.Errorf("onAssigned was called with %v, want %v", m.assigned, want)
		}
		return nil
	})
}

// awaitOwners waits until the members work on this many partitions each.
func (m *members) awaitOwners(want map[string]int) {
	m.t.Helper()
	testkit.Succeeds(m.t, func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		got := map[string]int{}
		for _, name := range m.owners {
			got[name]++
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("the members work on %v partitions, want %v", got, want)
		}
		return nil
	})
}

// commit calls the partition's Commit.
func (m *members) commit(partition int, next int64) error {
	m.mu.Lock()
	commit := m.commits[partition]
	m.mu.Unlock()
	return commit(next)
}

// leavesWithin is how soon a member leaves once its context is done.
const leavesWithin = 3 * time.Second

func TestConsume(t *testing.T) {
	t.Parallel()
	t.Run("a single member gets all partitions, and Consume returns when its context ends", func(t *testing.T) {
		t.Parallel()
		broker := streamtest.StartBroker(t)
		topics := broker.CreateTopics(3)
		testkit.Follows(t, leavesWithin, func(int) func() error {
			group := newMembers(t)
			leave := group.join("only", topics)
			group.awaitOwners(map[string]int{"only": 3})
			return func() error {
				leave()
				if group.ended != 3 {
					t.Errorf("Consume returned with work on %d of 3 partitions ended", group.ended)
				}
				return nil
			}
		})
	})
	t.Run("members share partitions, and the rest take over from one that leaves", func(t *testing.T) {
		t.Parallel()
		broker := streamtest.StartBroker(t)
		group := newMembers(t)
		leaveA := group.join("a", broker.CreateTopics(4))
		group.awaitOwners(map[string]int{"a": 4})
		leaveB := group.join("b", broker.CreateTopics(4))
		group.awaitOwners(map[string]int{"a": 2, "b": 2})
		leaveA()
		group.awaitOwners(map[string]int{"b": 4})
		leaveB()
	})
	t.Run("a member without a partition takes over from one that leaves", func(t *testing.T) {
		t.Parallel()
		broker := streamtest.StartBroker(t)
		group := newMembers(t)
		leaveA := group.join("a", broker.CreateTopics(1))
		group.awaitOwners(map[string]int{"a": 1})
		group.join("b", broker.CreateTopics(1))
		testkit.Succeeds(t, func() error {
			group.mu.Lock()
			defer group.mu.Unlock()
			if len(group.assigned) != 2 || group.assigned["a"]+group.assigned["b"] != 1 {
				return fmt.Errorf("onAssigned was called with %v, want one partition and none", group.assigned)
			}
			return nil
		})
		leaveA()
		group.awaitOwners(map[string]int{"b": 1})
		group.awaitAssigned(map[string]int{"b": 1})
	})
	t.Run("a member joins again after the broker restarts", func(t *testing.T) {
		t.Parallel()
		broker := streamtest.StartBroker(t)
		group := newMembers(t)
		group.join("a", broker.CreateTopics(2))
		group.awaitOwners(map[string]int{"a": 2})
		broker.Stop()
		group.awaitOwners(map[string]int{})
		group.awaitAssigned(map[string]int{})
		broker.Start()
		group.awaitOwners(map[string]int{"a": 2})
	})
	t.Run("Consume returns promptly while the broker is away", func(t *testing.T) {
		t.Parallel()
		broker := streamtest.StartBroker(t)
		topics := broker.CreateTopics(2)
		testkit.Follows(t, leavesWithin, func(try int) func() error {
			if try > 0 {
				broker.Start()
			}
			group := newMembers(t)
			leave := group.join("a", topics)
			group.awaitOwners(map[string]int{"a": 2})
			broker.Stop()
			return func() error {
				leave()
				return nil
			}
		})
	})
}

func TestConsumeRebalancesWhenPartitionsChange(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	log := new(testkit.Buffer)
	client, err := stream.New(broker.Config(2), log.Logger())
	testkit.Must(t, err)
	t.Cleanup(client.Close)
	group := newMembers(t)
	group.join("a", client)
	testkit.Succeeds(t, func() error { return atLeast(1, log.Count("joined the consumer group")) })

	// The topic is created after the member joined.
	broker.CreateTopics(2)
	group.awaitOwners(map[string]int{"a": 2})

	// It gets more partitions.
	admin := &kafka.Client{Addr: kafka.TCP(broker.Addr), Transport: new(kafka.Transport)}
	defer admin.Transport.(*kafka.Transport).CloseIdleConnections()
	res, err := admin.CreatePartitions(t.Context(), &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{
		{Name: stream.DefaultConfig().Clicks, Count: 5}}})
	if err = errors.Join(err, res.Errors[stream.DefaultConfig().Clicks]); err != nil {
		t.Fatal(err)
	}
	group.awaitOwners(map[string]int{"a": 5})

	// It is deleted.
	testkit.Must(t, broker.DeleteTopic(stream.DefaultConfig().Clicks))
	group.awaitOwners(map[string]int{})

	// It is created again.
	broker.CreateTopics(3)
	group.awaitOwners(map[string]int{"a": 3})
	if joined := log.Count("joined the consumer group"); joined > 10 {
		t.Errorf("the member joined %d times, want about 5: once per state of the topic", joined)
	}
}

// The topic is away only while the group assigns its partitions. Each look of a member at the topic finds the same
// number of partitions.
func TestConsumeSeesATopicThatWasAwayBriefly(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client := broker.CreateTopics(3)
	once := func(request kmsg.Key, do func()) {
		do = sync.OnceFunc(do) // a control function stays until it answers
		broker.ControlKey(int16(request), func(kmsg.Request) (kmsg.Response, error, bool) {
			broker.SleepControl(do) // other requests are answered
			return nil, nil, false  // the broker answers as if there were no control function
		})
	}
	once(kmsg.JoinGroup, func() { testkit.Must(t, broker.DeleteTopic(stream.DefaultConfig().Clicks)) })
	once(kmsg.SyncGroup, func() { broker.CreateTopics(3) })
	group := newMembers(t)
	group.join("a", client)
	group.awaitOwners(map[string]int{"a": 3})
}

func TestCommitMovesTheGroupOffset(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	group := newMembers(t)
	group.join("a", broker.CreateTopics(2))
	group.awaitOwners(map[string]int{"a": 2})
	for _, next := range []int64{5, 12, 3} { // a restored store may be behind its last commit
		testkit.Must(t, group.commit(1, next))
		if got := streamtest.CommittedOffsets(t, broker.Config(2), 2); !slices.Equal(got, []int64{-1, next}) {
			t.Errorf("committed offsets %v, want -1 and %d", got, next)
		}
	}
}

// The pause between attempts must not grow with the length of an outage.
func TestConsumeRetriesEverySecond(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
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
	newMembers(t).join("a", streamtest.NewClient(t, cfg))
	testkit.Follows(t, 6*time.Second, func(int) func() error {
		before := int(attempts.Load())
		return func() error { return atLeast(4, int(attempts.Load())-before) }
	})
}

func atLeast(want, got int) error {
	if got < want {
		return fmt.Errorf("got %d of %d", got, want)
	}
	return nil
}
