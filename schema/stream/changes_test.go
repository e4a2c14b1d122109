package stream_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// follower records the changes that a node receives.
type follower struct {
	mu      sync.Mutex
	seen    map[schema.Change]bool
	missed  int
	reached schema.ChangePosition
	current bool
}

func (f *follower) Drop(c schema.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[c] = true
}

func (f *follower) Missed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.missed++
}

func (f *follower) Reached(p schema.ChangePosition, current bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reached, f.current = p, f.current || current
}

// follow starts a node that follows the changes until the test ends. It returns once the node has its position.
func follow(t *testing.T, client *stream.Client) *follower {
	t.Helper()
	f := &follower{seen: map[schema.Change]bool{}}
	runUntilEnd(t, func(ctx context.Context) {
		client.FollowChanges(ctx, schema.ChangePosition{}, f)
	})
	testkit.Eventually(t, "the node follows", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.current
	})
	return f
}

func (f *follower) await(t *testing.T, want schema.Change) {
	t.Helper()
	testkit.Succeeds(t, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !f.seen[want] {
			return fmt.Errorf("the node has not received %+v", want)
		}
		return nil
	})
}

// runUntilEnd runs f in a goroutine. The cleanup of the test cancels its context and waits for it.
func runUntilEnd(t *testing.T, f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func TestChanges(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client := broker.CreateTopics(1)
	nodes := []*follower{follow(t, client), follow(t, broker.CreateTopics(1))}
	t.Run("reach every node, of each kind, in any number", func(t *testing.T) {
		changes := []schema.Change{{DomainID: 1, Hash: "made"}, {Host: "go.example"}, {AccountID: 7}}
		for n := range 2000 { // several requests
			changes = append(changes, schema.Change{Hash: fmt.Sprint("many", n)})
		}
		testkit.Must(t, client.PublishChanges(t.Context(), changes))
		for _, node := range nodes {
			for _, change := range changes {
				node.await(t, change)
			}
		}
	})
	t.Run("are not published while the broker is away", func(t *testing.T) {
		broker.Stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := client.PublishChanges(ctx, []schema.Change{{Host: "lost.example"}}); err == nil {
			t.Error("no error")
		}
		broker.Start()
	})
	t.Run("reach nodes that have followed before the broker was restarted", func(t *testing.T) {
		again := schema.Change{Host: "again.example"}
		testkit.Succeeds(t, func() error { return client.PublishChanges(t.Context(), []schema.Change{again}) })
		for _, node := range nodes {
			node.await(t, again)
		}
	})
}
