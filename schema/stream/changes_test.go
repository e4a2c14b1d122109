package stream_test

import (
	"context"
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
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
)

// follower notes the changes that one node sees.
type follower struct {
	mu   sync.Mutex
	seen map[schema.Change]bool
}

// follow starts a node that follows the changes until the test ends, and waits until it does.
func follow(t *testing.T, client *stream.Client, publisher *stream.InvalidationPublisher) *follower {
	t.Helper()
	f := &follower{seen: map[schema.Change]bool{}}
	during(t, func(ctx context.Context) {
		client.FollowChanges(ctx, func(c schema.Change) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.seen[c] = true
		})
	})
	// What is announced before it follows it need not see, so one change after another is announced until one arrives.
	n := 0
	streamtest.Eventually(t, func() string {
		n++
		publisher.Publish(schema.Change{Host: fmt.Sprintf("%s-%d.example", t.Name(), n)})
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.seen) == 0 {
			return "a node does not follow the changes"
		}
		return ""
	})
	return f
}

func (f *follower) wait(t *testing.T, want schema.Change) {
	t.Helper()
	streamtest.Eventually(t, func() string {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !f.seen[want] {
			return fmt.Sprintf("a node does not know of %+v", want)
		}
		return ""
	})
}

// during runs f until the test ends.
func during(t *testing.T, f func(context.Context)) {
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
	client := broker.Topics(1)
	publisher := stream.NewInvalidationPublisher(client, slog.New(slog.DiscardHandler))
	during(t, publisher.Run)
	nodes := []*follower{follow(t, client, publisher), follow(t, broker.Topics(1), publisher)}
	arrives := func(t *testing.T, want schema.Change) {
		t.Helper()
		for _, node := range nodes {
			node.wait(t, want)
		}
	}

	links, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "links.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { links.Close() })
	db := invalidation.Wrap(links, publisher)
	account := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	must(t, db.CreateAccount(t.Context(), &account))

	t.Run("every node sees that a link is made, and that it is switched off", func(t *testing.T) {
		link := schema.Link{AccountID: account.ID, Hash: "made", URL: "https://example.org/", Active: true, CreatedAt: time.Now()}
		must(t, db.CreateLink(t.Context(), &link))
		arrives(t, schema.Change{Hash: "made"})
		forget(nodes)
		must(t, db.SetActive(t.Context(), 0, "made", false))
		arrives(t, schema.Change{Hash: "made"})
	})
	t.Run("every node sees that a domain is verified, at once or later", func(t *testing.T) {
		now := time.Now()
		verified := schema.Domain{AccountID: account.ID, Host: "at-once.example", CreatedAt: now, VerifiedAt: now}
		must(t, db.CreateDomain(t.Context(), &verified))
		arrives(t, schema.Change{Host: "at-once.example"})
		claimed := schema.Domain{AccountID: account.ID, Host: "later.example", CreatedAt: now}
		must(t, db.CreateDomain(t.Context(), &claimed))
		must(t, db.VerifyDomain(t.Context(), claimed.ID, now))
		arrives(t, schema.Change{Host: "later.example"})
	})
	t.Run("every node sees that a domain is deleted", func(t *testing.T) {
		domain := schema.Domain{AccountID: account.ID, Host: "gone.example", CreatedAt: time.Now()}
		must(t, db.CreateDomain(t.Context(), &domain))
		must(t, db.DeleteDomain(t.Context(), domain.ID))
		arrives(t, schema.Change{Host: "gone.example"})
		if err := db.DeleteDomain(t.Context(), domain.ID); schema.ErrorCode(err) != schema.CodeNotFound {
			t.Errorf("it is deleted again: got error %v", err)
		}
	})
	t.Run("a change that failed is not announced", func(t *testing.T) {
		forget(nodes)
		taken := schema.Link{AccountID: account.ID, Hash: "made", URL: "https://example.org/", CreatedAt: time.Now()}
		if err := db.CreateLink(t.Context(), &taken); err == nil {
			t.Fatal("a taken hash was stored")
		}
		publisher.Publish(schema.Change{Host: "next.example"})
		arrives(t, schema.Change{Host: "next.example"})
		nodes[0].mu.Lock()
		defer nodes[0].mu.Unlock()
		if nodes[0].seen[schema.Change{Hash: "made"}] {
			t.Error("it was announced")
		}
	})
	t.Run("nodes go on after the broker was away", func(t *testing.T) {
		broker.Stop()
		publisher.Publish(schema.Change{Host: "meanwhile.example"})
		broker.Start()
		arrives(t, schema.Change{Host: "meanwhile.example"})
	})
}

// notes is a log that may be read while it is written.
type notes struct {
	mu   sync.Mutex
	text strings.Builder
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

func TestDroppedChanges(t *testing.T) {
	t.Parallel()
	const announced, room = 10_000, 4096
	broker, log := streamtest.StartBroker(t), &notes{}
	publisher := stream.NewInvalidationPublisher(broker.Topics(1), slog.New(slog.NewTextHandler(log, nil)))
	for n := range announced {
		publisher.Publish(schema.Change{Hash: fmt.Sprint(n)})
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "changes are not announced") {
		t.Fatalf("changes that find no room are not told of once: %q", got)
	}
	during(t, publisher.Run)
	want := fmt.Sprintf("changes=%d\n", announced-room)
	streamtest.Eventually(t, func() string {
		if got := log.String(); !strings.HasSuffix(got, want) {
			return fmt.Sprintf("the log is %q, and does not say how many found no room", got)
		}
		return ""
	})
}

func forget(nodes []*follower) {
	for _, node := range nodes {
		node.mu.Lock()
		clear(node.seen)
		node.mu.Unlock()
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
