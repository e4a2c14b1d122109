package certificate_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/edge/certificate"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// domains is a store of verified domains that counts its queries.
type domains struct {
	mu      sync.Mutex
	hosts   []string
	err     error
	queries atomic.Int64
}

func (d *domains) set(err error, hosts ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hosts, d.err = hosts, err
}

func (d *domains) VerifiedDomain(_ context.Context, host string) (schema.Domain, error) {
	d.queries.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.hosts, host); d.err == nil && i >= 0 {
		return schema.Domain{ID: int64(i + 1), AccountID: 7, Host: host}, nil
	}
	return schema.Domain{}, cmp.Or[error](d.err, schema.Errorf(schema.CodeNotFound, "no such domain"))
}

func (d *domains) VerifiedDomains(_ context.Context, after int64, limit int) (page []schema.Domain, err error) {
	d.queries.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := int(after); i < len(d.hosts) && len(page) < limit; i++ {
		page = append(page, schema.Domain{ID: int64(i + 1), Host: d.hosts[i]})
	}
	return page, d.err
}

// startHosts runs hosts with the default domain sho.rt until the test ends.
func startHosts(t *testing.T, store certificate.HostStore) *certificate.Hosts {
	t.Helper()
	hosts := certificate.NewHosts("sho.rt", store, metrics.NewSet(), new(testkit.Buffer).Logger())
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { hosts.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return hosts
}

func ask(hosts *certificate.Hosts, domain string) int {
	var ctx fasthttp.RequestCtx
	ctx.Request.SetRequestURI("/tls/ask")
	ctx.QueryArgs().Set("domain", domain)
	hosts.Answer(&ctx)
	return ctx.Response.StatusCode()
}

func TestAsk(t *testing.T) {
	t.Parallel()
	store := &domains{hosts: []string{"go.example", "xn--mnchen-3ya.example"}}
	hosts := startHosts(t, store)
	testkit.Eventually(t, "hosts are loaded", func() bool { return ask(hosts, "go.example") == 200 })
	for domain, want := range map[string]int{"sho.rt": 200, "GO.example.": 200, "münchen.example": 200,
		"other.example": 404,
		"a.go.example":  404, "": 400, "not a host": 400} {
		testkit.Equal(t, "answer for "+domain, ask(hosts, domain), want)
	}
	t.Run("10,000 unknown names cost no query", func(t *testing.T) {
		before := store.queries.Load()
		for i := range 10_000 {
			if ask(hosts, fmt.Sprintf("%d.example", i)) != 404 {
				t.Fatal("an unknown name is known")
			}
		}
		testkit.Equal(t, "queries", store.queries.Load(), before)
	})
	t.Run("a change is looked up, and again until the store answers", func(t *testing.T) {
		store.set(errors.New("away"), "new.example")
		hosts.Drop(schema.Change{Host: "new.example"})
		hosts.Drop(schema.Change{Host: "go.example"})
		before := store.queries.Load()
		testkit.Eventually(t, "the store is asked", func() bool { return store.queries.Load() > before })
		testkit.Equal(t, "what was known stays", ask(hosts, "go.example"), 200)
		store.set(nil, "new.example")
		testkit.Eventually(t, "the new one is known", func() bool { return ask(hosts, "new.example") == 200 })
		testkit.Eventually(t, "the old one is not", func() bool { return ask(hosts, "go.example") == 404 })
	})
	t.Run("more changes than are kept end in the same", func(t *testing.T) {
		store.set(nil, "last.example")
		for range 10_000 {
			hosts.Drop(schema.Change{Host: "new.example"})
		}
		testkit.Eventually(t, "the last one is known", func() bool { return ask(hosts, "last.example") == 200 })
	})
}

func TestAskBeforeTheStoreAnswers(t *testing.T) {
	t.Parallel()
	store := &domains{err: errors.New("away")}
	hosts := startHosts(t, store)
	testkit.Eventually(t, "the store is asked", func() bool { return store.queries.Load() > 0 })
	testkit.Equal(t, "default domain", ask(hosts, "sho.rt"), 200)
	testkit.Equal(t, "another", ask(hosts, "go.example"), 503)
	store.set(nil, "go.example")
	testkit.Eventually(t, "it is known", func() bool { return ask(hosts, "go.example") == 200 })
}
