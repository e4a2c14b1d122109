package resolve_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"go.uber.org/goleak"

	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// negativeTTL is how long an unknown host or hash is remembered.
var negativeTTL = resolve.DefaultConfig().CacheTTL / 60

// env is a resolver with a link store. Its default domain is sho.rt.
type env struct {
	cfg       resolve.Config
	store     *faultyStore
	accountID int64
	metrics   *metrics.Set
	log       *testkit.Buffer
	resolver  *resolve.Resolver
}

// newEnv returns an env. If change is not nil it may change the configuration first.
func newEnv(t testing.TB, change func(*resolve.Config)) *env {
	t.Helper()
	e := &env{cfg: resolve.DefaultConfig(), metrics: metrics.NewSet(), log: new(testkit.Buffer)}
	e.cfg.URL = schema.MustParseBaseURL("https://sho.rt")
	e.cfg.CacheBytes, e.cfg.LookupTimeout = 8<<20, time.Minute // a busy machine may take long
	if change != nil {
		change(&e.cfg)
	}
	testkit.Must(t, e.cfg.Validate())
	e.store = newFaultyStore(t)
	account := schema.Account{Email: "owner@example.com", CreatedAt: time.Now()}
	testkit.Must(t, e.store.CreateAccount(t.Context(), &account))
	e.accountID = account.ID
	var err error
	e.resolver, err = resolve.New(e.cfg, e.store, e.store, e.metrics, e.log.Logger())
	testkit.Must(t, err)
	t.Cleanup(e.resolver.Close)
	return e
}

// link creates a link on a domain. Domain 0 is the default domain.
func (e *env) link(t testing.TB, domainID int64, hash, url string) {
	t.Helper()
	link := schema.Link{
		AccountID: e.accountID, DomainID: domainID, Hash: hash, URL: url, Active: true, CreatedAt: time.Now(),
	}
	testkit.Must(t, e.store.CreateLink(t.Context(), &link))
}

// domain creates a domain and returns its ID.
func (e *env) domain(t testing.TB, host string, verified bool) int64 {
	t.Helper()
	domain := schema.Domain{AccountID: e.accountID, Host: host, CreatedAt: time.Now()}
	if verified {
		domain.VerifiedAt = time.Now()
	}
	testkit.Must(t, e.store.CreateDomain(t.Context(), &domain))
	return domain.ID
}

// setActive activates or deactivates a link without a Drop.
func (e *env) setActive(t testing.TB, hash string, active bool) {
	t.Helper()
	storetest.SetActive(t, e.store.plain, 0, hash, active)
}

// resolve returns the link's location at the time now, or "" and the error's code.
func (e *env) resolve(host, hash string, now time.Time) (string, schema.Code) {
	return e.resolveFor(netip.Addr{}, host, hash, now)
}

// tooMany stands for resolve.ErrTooMany, which has no code.
const tooMany schema.Code = "too many"

// resolveFor is resolve for a client.
func (e *env) resolveFor(client netip.Addr, host, hash string, now time.Time) (string, schema.Code) {
	target, err := e.resolver.Resolve([]byte(host), []byte(hash), client, now)
	switch {
	case err == resolve.ErrTooMany:
		return "", tooMany
	case err != nil:
		return "", schema.ErrorCode(err)
	}
	return string(target.Location), ""
}

func (e *env) want(t testing.TB, host, hash string, now time.Time, location string, code schema.Code) {
	t.Helper()
	if l, c := e.resolve(host, hash, now); l != location || c != code {
		t.Errorf("resolve %q on %q: %q, code %q; want %q, code %q", hash, host, l, c, location, code)
	}
}

// wantActive requires that the link on the default domain is found, and active or not.
func (e *env) wantActive(t testing.TB, hash string, now time.Time, active bool) {
	t.Helper()
	target, err := e.resolver.Resolve([]byte("sho.rt"), []byte(hash), netip.Addr{}, now)
	if err != nil || (len(target.Location) > 0) != active {
		t.Errorf("resolve %q: %+v, error %v, want active %t", hash, target, err, active)
	}
}

// wantLookups requires that n look-ups have reached the store.
func (e *env) wantLookups(t testing.TB, n int64) {
	t.Helper()
	if got := e.store.lookups.Load(); got != n {
		t.Errorf("%d look-ups, want %d", got, n)
	}
}

// metric returns the value of a metric.
func (e *env) metric(t testing.TB, name string) int {
	t.Helper()
	var text bytes.Buffer
	e.metrics.WritePrometheus(&text)
	_, value, found := strings.Cut(text.String(), name+" ")
	value, _, _ = strings.Cut(value, "\n")
	n, err := strconv.Atoi(value)
	if !found || err != nil {
		t.Fatalf("no metric %q with an integer in\n%s", name, &text)
	}
	return n
}

// heapBytes returns the size of the heap without garbage. One collection is not enough: pools keep what they hold
// through one, and goroutines that are about to end still hold some.
func heapBytes() (size int64) {
	for last := int64(math.MaxInt64); ; last = size {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		if size = int64(stats.HeapAlloc); size > last-last/1000 {
			return size
		}
	}
}

// faultyStore is a link store that counts look-ups and fails on command.
type faultyStore struct {
	*linkstore.Store // with the faults of all look-ups but EdgeLinks
	plain            *linkstore.Store

	fault    atomic.Pointer[func(context.Context) error]
	answered atomic.Bool  // EdgeLinks reads the store before the fault, not after it
	endless  atomic.Bool  // there is a link to endlessURL at every hash
	lookups  atomic.Int64 // of hosts and of links, however many in a query
	running  atomic.Int64
	queries  atomic.Int64 // for links
}

func newFaultyStore(t testing.TB) *faultyStore {
	s := new(faultyStore)
	begin := func(ctx context.Context) error { return s.begin(ctx) }
	s.plain = sqlitetest.New(t)
	s.Store = storetest.Faulty(s.plain, storetest.FaultOf(begin, "LinksByHash", "VerifiedDomain"))
	return s
}

// inject makes every look-up call fault, and fail with its error. Nil makes the store work again.
func (s *faultyStore) inject(fault func(context.Context) error) {
	if fault == nil {
		s.fault.Store(nil)
		return
	}
	s.fault.Store(&fault)
}

func (s *faultyStore) begin(ctx context.Context, keys ...schema.LinkKey) error {
	n := int64(max(1, len(keys)))
	s.lookups.Add(n)
	s.running.Add(n)
	defer s.running.Add(-n)
	for _, key := range keys {
		if strings.HasPrefix(key.Hash, heldPrefix) {
			<-ctx.Done()
			return ctx.Err()
		}
	}
	if fault := s.fault.Load(); fault != nil {
		return (*fault)(ctx)
	}
	return nil
}

func (s *faultyStore) EdgeLinks(ctx context.Context, keys []schema.LinkKey) ([]schema.EdgeLink, error) {
	s.queries.Add(1)
	if s.answered.Load() {
		found, err := s.plain.EdgeLinks(ctx, keys)
		return found, errors.Join(err, s.begin(ctx, keys...))
	}
	err := s.begin(ctx, keys...)
	found := make([]schema.EdgeLink, len(keys))
	switch {
	case schema.ErrorCode(err) == schema.CodeNotFound:
		return found, nil
	case err != nil:
		return nil, err
	case !s.endless.Load():
		return s.plain.EdgeLinks(ctx, keys)
	}
	for i := range keys {
		found[i] = schema.EdgeLink{LinkID: 1, AccountID: 1, URL: endlessURL, Active: true}
	}
	return found, nil
}

// heldPrefix begins hashes for which the store does not answer.
const heldPrefix = "held-"

const endlessURL = "https://example.com/some/page"

// down is the fault of a store that cannot be reached.
func down(context.Context) error { return errors.New("connection refused") }

// hang is the fault of a store that does not answer.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// held returns a fault that makes look-ups wait until release is called, and then lets them continue.
func held() (fault func(context.Context) error, release func()) {
	released := make(chan struct{})
	return func(ctx context.Context) error {
		select {
		case <-released:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, sync.OnceFunc(func() { close(released) })
}
