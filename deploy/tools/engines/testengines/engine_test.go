package testengines_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

var discard = slog.New(slog.DiscardHandler)

// store writes values to an engine with a client of its own and reads them back, sorted.
type store interface {
	write(ctx context.Context, e *testengines.Engine, value string) error
	read(ctx context.Context, e *testengines.Engine) ([]string, error)
}

// testEngine starts, kills, stops and restarts an engine and requires that it keeps its data.
func testEngine(t *testing.T, start testengines.Starter, s store) {
	dir := t.TempDir()
	l := &life{engine: begin(t, start, dir), store: s}
	t.Log(l.engine)
	testFields(t, l.engine, start, dir)

	t.Run("answers", func(t *testing.T) { l.check(t, "a") })
	t.Run("keeps its data when it is killed", func(t *testing.T) {
		restart(t, l.engine, l.engine.Kill)
		l.check(t, "b")
	})
	t.Run("keeps its data when it is stopped, and started at another address", func(t *testing.T) {
		if err := errors.Join(l.engine.Stop(), l.engine.Stop(), l.engine.Close()); err != nil { // the second call does nothing
			t.Fatal(err)
		}
		l.engine = begin(t, start, dir)
		l.check(t, "c")
	})
	t.Run("cannot be started after it is closed", func(t *testing.T) {
		if err := l.engine.Close(); err != nil {
			t.Fatal(err)
		}
		if conn, err := net.Dial("tcp", hostPort(t, l.engine)); err == nil {
			t.Errorf("something listens on %v", conn.RemoteAddr())
			conn.Close()
		}
		if err := l.engine.Start(t.Context()); !errors.Is(err, testengines.ErrNotOurs) {
			t.Errorf("start: %v", err)
		}
	})
}

// testFields tests the fields of an engine that runs in dir, and the lock and the log in dir.
func testFields(t *testing.T, e *testengines.Engine, start testengines.Starter, dir string) {
	t.Run("describes itself", func(t *testing.T) {
		if e.Version == "" || e.Source == "" || !strings.HasPrefix(e.String(), e.Name+" "+e.Version) {
			t.Errorf("version %q, source %q, line %q", e.Version, e.Source, e)
		}
	})
	t.Run("locks its folder", func(t *testing.T) {
		if second, err := start(t.Context(), dir, discard); err == nil {
			t.Errorf("%v started in the folder of %v", second, e)
		}
	})
	if e.Source != "embedded" {
		t.Run("writes a log", func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(dir, e.Name+".log")); err != nil {
				t.Error(err)
			}
		})
	}
	if e.CertFile != "" {
		t.Run("serves TLS", func(t *testing.T) { testTLS(t, e) })
	}
	if e.Secure != nil {
		t.Run("has a listener with authentication", func(t *testing.T) { testSecure(t, e.Secure) })
	}
}

// life is an engine and the values it must hold.
type life struct {
	engine *testengines.Engine
	store  store
	want   []string
}

// check writes one more value and reads all of them.
func (l *life) check(t *testing.T, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if err := l.store.write(ctx, l.engine, value); err != nil {
		t.Fatalf("write %q: %v", value, err)
	}
	l.want = append(l.want, value)
	if got, err := l.store.read(ctx, l.engine); err != nil || !slices.Equal(got, l.want) {
		t.Fatalf("read %q, %v, want %q", got, err, l.want)
	}
}

// begin starts an engine, which is closed when the test ends.
func begin(t *testing.T, start testengines.Starter, dir string) *testengines.Engine {
	t.Helper()
	skipIfShort(t)
	e, err := start(t.Context(), dir, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func skipIfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out tests that need an engine")
	}
}

// restart stops an engine by down, requires that nothing listens at its address, and starts it again.
func restart(t *testing.T, e *testengines.Engine, down func() error) {
	t.Helper()
	begin := time.Now()
	for range 2 { // the second call does nothing
		if err := down(); err != nil {
			t.Fatal(err)
		}
	}
	if conn, err := net.Dial("tcp", hostPort(t, e)); err == nil {
		t.Errorf("something listens on %v", conn.RemoteAddr())
		conn.Close()
	}
	t.Logf("down after %v", time.Since(begin).Round(time.Millisecond))
	begin = time.Now()
	for range 2 {
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("up after %v", time.Since(begin).Round(time.Millisecond))
}

// hostPort returns the address that an engine listens on.
func hostPort(t *testing.T, e *testengines.Engine) string {
	t.Helper()
	if !strings.Contains(e.Addr, "://") {
		return e.Addr
	}
	u, err := url.Parse(e.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
