package stream_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/api/invalidation"
	"linkstream/schema"
	"linkstream/schema/sqlite"
	"linkstream/schema/storetest"
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

// follow starts a node that follows the changes until the test ends. It returns once the node receives changes.
func follow(t *testing.T, client *stream.Client, publisher *stream.InvalidationPublisher) *follower {
	t.Helper()
	f := &follower{seen: map[schema.Change]bool{}}
	runUntilEnd(t, func(ctx context.Context) {
		client.FollowChanges(ctx, schema.ChangePosition{}, f)
	})
	// A change published before the node has its position does not reach it: publish changes until one does.
	n := 0
	testkit.Succeeds(t, func() error {
		n++
		publisher.Publish(schema.Change{Host: fmt.Sprintf("%s-%d.example", t.Name(), n)})
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.seen) == 0 {
			return errors.New("the node receives no changes")
		}
		return nil
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
	publisher := stream.NewInvalidationPublisher(client, slog.New(slog.DiscardHandler))
	runUntilEnd(t, publisher.Run)
	nodes := []*follower{follow(t, client, publisher), follow(t, broker.CreateTopics(1), publisher)}
	arrives := func(t *testing.T, want schema.Change) {
		t.Helper()
		for _, node := range nodes {
			node.await(t, want)
		}
	}

	links, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "links.db"))
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Close(t, links) })
	db := invalidation.Wrap(links, publisher)
	account := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(t, db.CreateAccount(t.Context(), &account))

	t.Run("every node learns of a created and of a deactivated link", func(t *testing.T) {
		link := schema.Link{AccountID: account.ID, Hash: "made", URL: "https://example.org/", Active: true, CreatedAt: time.Now()}
		testkit.Must(t, db.CreateLink(t.Context(), &link))
		arrives(t, schema.Change{Hash: "made"})
		forget(nodes)
		storetest.SetActive(t, db, 0, "made", false)
		arrives(t, schema.Change{Hash: "made"})
	})
	t.Run("every node learns of a verified domain", func(t *testing.T) {
		now := time.Now()
		verified := schema.Domain{AccountID: account.ID, Host: "at-once.example", CreatedAt: now, VerifiedAt: now}
		testkit.Must(t, db.CreateDomain(t.Context(), &verified))
		arrives(t, schema.Change{Host: "at-once.example"})
		claimed := schema.Domain{AccountID: account.ID, Host: "later.example", CreatedAt: now}
		testkit.Must(t, db.CreateDomain(t.Context(), &claimed))
		testkit.Must(t, db.VerifyDomain(t.Context(), claimed.ID, now))
		arrives(t, schema.Change{Host: "later.example"})
	})
	t.Run("every node learns of a deleted domain", func(t *testing.T) {
		domain := schema.Domain{AccountID: account.ID, Host: "gone.example", CreatedAt: time.Now()}
		testkit.Must(t, db.CreateDomain(t.Context(), &domain))
		testkit.Must(t, db.DeleteDomain(t.Context(), domain.ID))
		arrives(t, schema.Change{Host: "gone.example"})
		if err := db.DeleteDomain(t.Context(), domain.ID); schema.ErrorCode(err) != schema.CodeNotFound {
			t.Errorf("second DeleteDomain: got error %v, want not found", err)
		}
	})
	t.Run("a failed change is not published", func(t *testing.T) {
		forget(nodes)
		taken := schema.Link{AccountID: account.ID, Hash: "made", URL: "https://example.org/", CreatedAt: time.Now()}
		if err := db.CreateLink(t.Context(), &taken); err == nil {
			t.Fatal("CreateLink stored a hash that is taken")
		}
		publisher.Publish(schema.Change{Host: "next.example"})
		arrives(t, schema.Change{Host: "next.example"})
		nodes[0].mu.Lock()
		defer nodes[0].mu.Unlock()
		if nodes[0].seen[schema.Change{Hash: "made"}] {
			t.Error("the change was published")
		}
	})
	t.Run("nodes continue after the broker restarts", func(t *testing.T) {
		broker.Stop()
		publisher.Publish(schema.Change{Host: "meanwhile.example"})
		broker.Start()
		arrives(t, schema.Change{Host: "meanwhile.example"})
	})
}

func TestPublishLogsDroppedChanges(t *testing.T) {
	t.Parallel()
	const published, queueLen = 10_000, 4096
	broker, log := streamtest.StartBroker(t), new(testkit.Buffer)
	publisher := stream.NewInvalidationPublisher(broker.CreateTopics(1), log.Logger())
	for n := range published {
		publisher.Publish(schema.Change{Hash: fmt.Sprint(n)})
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "dropping changes") {
		t.Fatalf("the log does not say once that changes are dropped: %q", got)
	}
	runUntilEnd(t, publisher.Run)
	want := fmt.Sprintf("changes=%d\n", published-queueLen)
	testkit.Succeeds(t, func() error {
		if got := log.String(); !strings.HasSuffix(got, want) {
			return fmt.Errorf("the log is %q, and does not say how many changes were dropped", got)
		}
		return nil
	})
}

func TestNewLinksLeaveRoomForOtherChanges(t *testing.T) {
	t.Parallel()
	const created, queueLen = 10_000, 4096
	broker, log := streamtest.StartBroker(t), new(testkit.Buffer)
	client := broker.CreateTopics(1)
	publisher := stream.NewInvalidationPublisher(client, log.Logger())
	running := stream.NewInvalidationPublisher(client, log.Logger())
	runUntilEnd(t, running.Run)
	node := follow(t, client, running)
	many := make([]schema.Change, created)
	for n := range many {
		many[n] = schema.Change{Hash: fmt.Sprint("new", n)}
	}
	publisher.PublishNew(many)
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "dropping changes") {
		t.Fatalf("the log does not say once that changes are dropped: %q", got)
	}
	stopped := schema.Change{Hash: "stopped"}
	publisher.Publish(stopped)
	runUntilEnd(t, publisher.Run)
	node.await(t, stopped)
	node.await(t, many[queueLen-1])
	want := fmt.Sprintf("changes=%d\n", created-queueLen)
	testkit.Succeeds(t, func() error {
		if got := log.String(); !strings.Contains(got, want) {
			return fmt.Errorf("the log is %q, and does not say how many changes were dropped", got)
		}
		return nil
	})
}

func forget(nodes []*follower) {
	for _, node := range nodes {
		node.mu.Lock()
		clear(node.seen)
		node.mu.Unlock()
	}
}
