package invalidation_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/api/invalidation"
	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

// topic keeps the published changes.
type topic struct {
	mu        sync.Mutex
	published []schema.Change
	err       error
}

func (p *topic) publish(_ context.Context, changes []schema.Change) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.published = append(p.published, changes...)
	}
	return p.err
}

func (p *topic) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *topic) await(t *testing.T, want ...string) {
	t.Helper()
	testkit.Succeeds(t, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		var hashes []string
		for _, change := range p.published {
			hashes = append(hashes, change.Hash)
		}
		return testkit.Mismatch("published", hashes, want)
	})
}

func TestRelay(t *testing.T) {
	store, owner := open(t)
	create := func(hash string) {
		link := schema.Link{AccountID: owner.ID, Hash: hash, URL: "https://example.org/", CreatedAt: time.Now()}
		testkit.Must(t, store.CreateLink(t.Context(), &link))
	}
	log, published := new(testkit.Buffer), new(topic)
	relay := invalidation.NewRelay(store, 0, published.publish, log.Logger())
	set := metrics.NewSet()
	relay.RegisterMetrics(set)
	waiting := set.GetOrCreateGauge("linkstream_api_changes_waiting_seconds", nil)
	testkit.Equal(t, "seconds for which changes wait", waiting.Get(), 0)
	create("before") // by a process that was killed
	stop := service.RunInBackground(t.Context(), relay.Run)
	published.await(t, "before")
	create("others")
	published.await(t, "before", "others")
	create("own")
	relay.Wake()
	published.await(t, "before", "others", "own")

	published.fail(errors.New("the broker is away"))
	create("kept")
	testkit.Eventually(t, "the relay says why it does not publish",
		func() bool { return log.Contains("the broker is away") })
	testkit.Eventually(t, "a metric says so", func() bool { return waiting.Get() > 0 })
	pending, err := store.PendingChanges(t.Context(), schema.OutboxPosition{})
	testkit.Must(t, err)
	testkit.Equal(t, "pending", len(pending.Changes), 1)
	published.fail(nil)
	published.await(t, "before", "others", "own", "kept")
	testkit.Eventually(t, "the relay says that it publishes",
		func() bool { return log.Contains("publishing changes again") })
	testkit.Eventually(t, "the metric says so", func() bool { return waiting.Get() == 0 })
	testkit.Equal(t, "lines of the log", strings.Count(log.String(), "\n"), 2)

	for n := range 3000 { // more than one transaction takes
		create(fmt.Sprint("many", n))
	}
	stop()
	published.mu.Lock()
	defer published.mu.Unlock()
	testkit.Equal(t, "published when the relay has stopped", len(published.published), 3004)
}
