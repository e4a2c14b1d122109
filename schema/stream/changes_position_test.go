package stream_test

import (
	"context"
	"testing"

	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

// resume follows the changes after a position until the follower is current, and then stops.
func resume(t *testing.T, client *stream.Client, from schema.ChangePosition) *follower {
	t.Helper()
	f := &follower{seen: map[schema.Change]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		client.FollowChanges(ctx, from, f)
	}()
	testkit.Eventually(t, "the follower is current", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.current
	})
	cancel()
	<-done
	return f
}

// publish publishes changes, one by one.
func publish(t *testing.T, client *stream.Client, hashes ...string) {
	t.Helper()
	for _, hash := range hashes {
		testkit.Must(t, client.PublishChanges(t.Context(), []schema.Change{{Hash: hash}}))
	}
}

func TestFollowChangesFromAPosition(t *testing.T) {
	t.Parallel()
	broker := streamtest.StartBroker(t)
	client := broker.CreateTopics(1)
	wants := func(t *testing.T, f *follower, missed int, seen ...string) {
		t.Helper()
		testkit.Equal(t, "missed", f.missed, missed)
		testkit.Equal(t, "changes", len(f.seen), len(seen))
		for _, hash := range seen {
			testkit.Equal(t, "change of "+hash, f.seen[schema.Change{Hash: hash}], true)
		}
	}
	empty := resume(t, client, schema.ChangePosition{})
	wants(t, empty, 1)
	t.Run("of an empty log, all changes follow", func(t *testing.T) {
		publish(t, client, "a", "b")
		wants(t, resume(t, client, empty.reached), 0, "a", "b")
	})
	two := resume(t, client, schema.ChangePosition{})
	t.Run("without a position, changes so far are missed", func(t *testing.T) { wants(t, two, 1) })
	t.Run("the end, nothing follows", func(t *testing.T) {
		again := resume(t, client, two.reached)
		wants(t, again, 0)
		testkit.Equal(t, "position", again.reached, two.reached)
	})
	t.Run("changes published in between follow", func(t *testing.T) {
		publish(t, client, "c", "a", "d")
		wants(t, resume(t, client, two.reached), 0, "c", "a", "d")
	})
	four := resume(t, client, two.reached)
	t.Run("beyond the end of another log, changes are missed", func(t *testing.T) {
		other := streamtest.StartBroker(t).CreateTopics(1)
		publish(t, other, "x")
		f := resume(t, other, four.reached)
		wants(t, f, 1)
		wants(t, resume(t, other, f.reached), 0)
	})
	t.Run("within another log, changes are missed", func(t *testing.T) {
		other := streamtest.StartBroker(t).CreateTopics(1)
		publish(t, other, "a", "b", "c", "a", "d", "e", "f")
		wants(t, resume(t, other, four.reached), 1)
	})
}
