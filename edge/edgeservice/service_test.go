package edgeservice_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linkstream/edge/edgeservice"
	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/filelock"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp updates its Date header as long as the process runs, and the cleaner of a stopped server sleeps for
		// 10 s.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

var baseURL = schema.MustParseBaseURL("http://sho.rt")

// edge is a running edge with a link store and a broker. The store has a link with the hash "abc".
type edge struct {
	*edgeservice.Service
	cfg    edgeservice.Config
	log    slog.Handler // nil: discards
	links  *links
	broker *streamtest.Broker
	client *stream.Client
	stop   func() error // stops the edge and waits until it has stopped
	cancel func()       // begins to stop the edge
}

// start starts an edge. If change is not nil it may change the configuration first.
func start(t *testing.T, change func(*edgeservice.Config)) *edge {
	t.Helper()
	e := edge{cfg: edgeservice.DefaultConfig(), links: openLinks(t), broker: streamtest.StartBroker(t)}
	e.client = e.broker.CreateTopics(1)
	e.cfg.Listen, e.cfg.Resolve.URL, e.cfg.Spool.Dir = "127.0.0.1:0", baseURL, t.TempDir()
	e.cfg.Resolve.LookupTimeout = time.Minute // a busy machine may take long
	e.cfg.Spool.Lanes, e.cfg.Spool.SegmentBytes, e.cfg.Spool.MaxBytes = 1, 16<<10, 64<<10
	if change != nil {
		change(&e.cfg)
	}
	return e.restart(t)
}

// restart starts an edge with the parts of one that has stopped or not started.
func (e edge) restart(t *testing.T) *edge {
	t.Helper()
	var err error
	if e.log == nil {
		e.log = slog.DiscardHandler
	}
	e.Service, err = edgeservice.New(e.cfg, e.links, e.client, slog.New(e.log))
	testkit.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	e.cancel = cancel
	e.stop = sync.OnceValue(func() error { cancel(); return <-ran })
	t.Cleanup(func() { testkit.Must(t, e.stop()) })
	return &e
}

// links is a link store whose look-ups call a hook first.
type links struct {
	*linkstore.Store
	hook     atomic.Pointer[func() error]
	overflow atomic.Bool // the outbox has too many changes
	away     atomic.Bool // neither the outbox nor shared values can be read
}

var errAway = schema.Errorf(schema.CodeUnavailable, "the store is away")

func openLinks(t *testing.T) *links {
	t.Helper()
	db := sqlitetest.New(t)
	account := schema.Account{Email: "owner@example.com", CreatedAt: time.Now()}
	testkit.Must(t, db.CreateAccount(t.Context(), &account))
	link := schema.Link{
		AccountID: account.ID, Hash: "abc", URL: "https://example.com/", Active: true, CreatedAt: time.Now()}
	testkit.Must(t, db.CreateLink(t.Context(), &link))
	l := new(links)
	l.Store = storetest.Faulty(db, storetest.FaultOf(func(context.Context) error {
		if hook := l.hook.Load(); hook != nil {
			return (*hook)()
		}
		return nil
	}, "LinksByHash", "EdgeLinks"))
	return l
}

// before makes every look-up call hook first, and fail with its error.
func (l *links) before(hook func() error) { l.hook.Store(&hook) }

func (l *links) PendingChanges(ctx context.Context, after schema.OutboxPosition) (schema.Pending, error) {
	if l.away.Load() {
		return schema.Pending{}, errAway
	}
	pending, err := l.Store.PendingChanges(ctx, after)
	if l.overflow.Load() {
		pending.Changes, pending.Missed = nil, true
	}
	return pending, err
}

func (l *links) SharedValue(ctx context.Context, name string, first []byte) ([]byte, error) {
	if l.away.Load() {
		return nil, errAway
	}
	return l.Store.SharedValue(ctx, name, first)
}

// get requests a path on a connection of its own, and returns the status and the body.
func (e *edge) get(path string) (status int, body string, err error) {
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Get("http://" + e.Addr() + path)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// want requires that a request for path is answered with a status.
func (e *edge) want(t *testing.T, path string, status int) {
	t.Helper()
	got, _, err := e.get(path)
	testkit.Must(t, err)
	testkit.Equal(t, "status of "+path, got, status)
}

// awaitFollowing waits until the edge follows the changes of links. Links that are cached before may miss some.
func (e *edge) awaitFollowing(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "changes are followed", func() bool {
		var text strings.Builder
		e.Metrics().WritePrometheus(&text)
		return strings.Contains(text.String(), "linkstream_edge_changes_current 1\n")
	})
}

// refusesConnections waits until the edge has stopped to listen.
func (e *edge) refusesConnections(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "connections are refused", func() bool {
		conn, err := net.Dial("tcp", e.Addr())
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

// shipped returns the number of clicks that the broker has.
func (e *edge) shipped(t *testing.T) (clicks int64) {
	t.Helper()
	testkit.Succeeds(t, func() (err error) { // the client's connections to a broker that was restarted fail once
		_, clicks, err = e.client.Offsets(t.Context(), 0)
		return err
	})
	return clicks
}

// pending opens the edge's spool, which must not be in use, and returns the number of clicks in it.
func (e *edge) pending(t *testing.T) uint64 {
	t.Helper()
	s, err := spool.Open(e.cfg.Spool, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	defer testkit.Close(t, s)
	return s.Pending()
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	t.Run("a request under way is answered, and its click is shipped", func(t *testing.T) {
		t.Parallel()
		e := start(t, nil)
		lookup, release := make(chan struct{}), make(chan struct{})
		e.links.before(func() error { close(lookup); <-release; return nil })
		var request sync.WaitGroup
		request.Go(func() {
			if status, _, err := e.get("/abc"); status != http.StatusFound {
				t.Errorf("status %d, error %v", status, err)
			}
		})
		<-lookup
		e.cancel()
		e.refusesConnections(t)
		close(release)
		request.Wait()
		testkit.Must(t, e.stop())
		testkit.Equal(t, "shipped clicks", e.shipped(t), 1)
		testkit.Equal(t, "pending clicks", e.pending(t), 0)
	})
	t.Run("while pending clicks are shipped, no request is accepted and the spool stays locked", func(t *testing.T) {
		t.Parallel()
		e := start(t, nil)
		e.broker.Stop()
		e.want(t, "/abc", http.StatusFound)
		e.cancel()
		e.refusesConnections(t)
		_, err := spool.Open(e.cfg.Spool, slog.New(slog.DiscardHandler))
		if !errors.Is(err, filelock.ErrHeld) {
			t.Errorf("open the spool: error %v", err)
		}
		e.broker.Start() // within the time that the shipper has
		testkit.Must(t, e.stop())
		testkit.Equal(t, "shipped clicks", e.shipped(t), 1)
		testkit.Equal(t, "pending clicks", e.pending(t), 0)
	})
	t.Run("clicks that the broker does not accept wait for the next process", func(t *testing.T) {
		t.Parallel()
		e := start(t, nil)
		e.broker.Stop()
		e.want(t, "/abc", http.StatusFound)
		testkit.Must(t, e.stop())
		testkit.Equal(t, "pending clicks", e.pending(t), 1)
	})
}

func TestReady(t *testing.T) {
	t.Parallel()
	t.Run("while links are found and the spool has room", func(t *testing.T) {
		t.Parallel()
		e := start(t, nil)
		testkit.Must(t, e.Ready(t.Context()))
	})
	t.Run("not while the link store fails", func(t *testing.T) {
		t.Parallel()
		e := start(t, nil)
		e.links.before(func() error { return errors.New("connection refused") })
		if err := e.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "link store: read 1 links: connection "+
			"refused") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("not while the spool is full, and again when clicks are shipped", func(t *testing.T) {
		t.Parallel()
		e := start(t, nil)
		e.broker.Stop()
		testkit.Eventually(t, "the spool is full", func() bool {
			for range 50 {
				e.want(t, "/abc?"+strings.Repeat("x", 100), http.StatusFound) // redirects go on
			}
			err := e.Ready(t.Context())
			return err != nil && strings.Contains(err.Error(), "spool is nearly full")
		})
		e.broker.Start()
		testkit.Succeeds(t, func() error { return e.Ready(t.Context()) })
	})
}

func TestNew(t *testing.T) {
	t.Parallel()
	t.Run("an open listener is used", func(t *testing.T) {
		t.Parallel()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		testkit.Must(t, err)
		e := start(t, func(cfg *edgeservice.Config) { cfg.Listener = ln })
		testkit.Equal(t, "address", e.Addr(), ln.Addr().String())
		e.want(t, "/abc", http.StatusFound)
	})
	t.Run("an error releases what was opened before", func(t *testing.T) {
		t.Parallel()
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		testkit.Must(t, err)
		defer taken.Close()
		cfg := edgeservice.DefaultConfig()
		cfg.Listen, cfg.Resolve.URL, cfg.Spool.Dir = taken.Addr().String(), baseURL, t.TempDir()
		for range 2 { // the second call would find the spool locked
			if _, err := edgeservice.New(cfg, openLinks(t), nil, slog.New(slog.DiscardHandler)); err == nil ||
				!strings.Contains(err.Error(), "address already in use") {
				t.Errorf("error %v", err)
			}
		}
	})
}

func TestRestart(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	testkit.Must(t, e.DropPending(t.Context())) // the change that made the link, before the link is cached
	e.awaitFollowing(t)
	e.want(t, "/abc", http.StatusFound)
	testkit.Must(t, e.stop())
	e.links.before(func() error { return errAway })
	again := e.restart(t)
	t.Run("cached links are served while the link store is away", func(t *testing.T) {
		again.want(t, "/abc", http.StatusFound)
		again.want(t, "/other", http.StatusServiceUnavailable)
		if err := again.Ready(t.Context()); err == nil {
			t.Error("the edge is ready")
		}
	})
	t.Run("others are once it answers", func(t *testing.T) {
		e.links.before(func() error { return nil })
		testkit.Eventually(t, "the store is asked", func() bool {
			status, _, err := again.get("/other")
			return err == nil && status == http.StatusNotFound
		})
		testkit.Must(t, again.Ready(t.Context()))
	})
}

// TestKill takes a link down, and kills the edge, the store and the broker a second later.
func TestKill(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	link := schema.Link{AccountID: 1, Hash: "stays", URL: "https://example.com/", Active: true, CreatedAt: time.Now()}
	testkit.Must(t, e.links.CreateLink(t.Context(), &link))
	testkit.Must(t, e.DropPending(t.Context()))
	e.awaitFollowing(t)
	e.want(t, "/abc", http.StatusFound)
	e.want(t, "/stays", http.StatusFound)
	testkit.Must(t, e.stop()) // which writes a dump
	e = e.restart(t)
	storetest.SetActive(t, e.links, 0, "abc", false)
	time.Sleep(time.Second) // the promise
	killed := *e
	killed.cfg.Spool.Dir = t.TempDir()
	copyFiles(t, e.cfg.Spool.Dir, edgeservice.SnapshotName+"*", killed.cfg.Spool.Dir)
	e.links.before(func() error { return errAway })
	e.links.away.Store(true)
	e.broker.Stop()
	again := killed.restart(t)
	again.want(t, "/abc", http.StatusServiceUnavailable)
	again.want(t, "/stays", http.StatusFound)
	e.broker.Start() // so that it stops soon
}

// An edge that starts while the store is away hashes visitors as the one before.
func TestVisitorsWithoutStore(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	e.awaitFollowing(t)
	e.broker.Stop() // the clicks stay in the spool
	e.want(t, "/abc", http.StatusFound)
	testkit.Must(t, e.stop())
	e.links.before(func() error { return errAway })
	e.links.away.Store(true)
	again := e.restart(t)
	again.want(t, "/abc", http.StatusFound)
	testkit.Must(t, again.stop())
	visitors := e.visitors(t)
	if len(visitors) != 2 || visitors[0] == 0 || visitors[0] != visitors[1] {
		t.Errorf("hashes of visitors: %v", visitors)
	}
}

// copyFiles copies the files in a directory that match a pattern.
func copyFiles(t *testing.T, from, pattern, to string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(from, pattern))
	testkit.Must(t, err)
	for _, path := range files {
		content, err := os.ReadFile(path)
		testkit.Must(t, err)
		testkit.Must(t, os.WriteFile(filepath.Join(to, filepath.Base(path)), content, 0o600))
	}
}

// visitors returns the hashes of the visitors in the clicks of the edge's spool, which must not be in use.
func (e *edge) visitors(t *testing.T) (hashes []uint64) {
	t.Helper()
	s, err := spool.OpenLeft(e.cfg.Spool, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	defer testkit.Close(t, s)
	for _, lane := range s.Lanes() {
		var batch stream.Batch
		lane.Read(&batch, 1<<20)
		for i := range batch.Len() {
			var click schema.Click
			testkit.Must(t, schema.DecodeClick(batch.Value(i), &click))
			hashes = append(hashes, click.Visitor)
		}
	}
	return hashes
}
