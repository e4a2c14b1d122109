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

	"linkstream/deploy/testengines"
)

var discard = slog.New(slog.DiscardHandler)

// store puts values into an engine with a client of its own and reads them back, sorted.
type store interface {
	write(ctx context.Context, e *testengines.Engine, value string) error
	read(ctx context.Context, e *testengines.Engine) ([]string, error)
}

// testEngine takes an engine through its life.
func testEngine(t *testing.T, start testengines.Starter, s store) {
	dir := t.TempDir()
	l := &life{engine: begin(t, start, dir), store: s}
	t.Log(l.engine)
	testOneEngine(t, l.engine, start, dir)

	t.Run("answers", func(t *testing.T) { l.check(t, "a") })
	t.Run("comes back from a kill with its data", func(t *testing.T) {
		restart(t, l.engine, l.engine.Kill)
		l.check(t, "b")
	})
	t.Run("comes back from a stop with its data", func(t *testing.T) {
		restart(t, l.engine, l.engine.Stop)
		l.check(t, "c")
	})
	t.Run("comes back elsewhere with its data", func(t *testing.T) {
		if err := errors.Join(l.engine.Kill(), l.engine.Close()); err != nil {
			t.Fatal(err)
		}
		l.engine = begin(t, start, dir)
		l.check(t, "d")
	})
	t.Run("cannot be started once it is closed", func(t *testing.T) {
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

// testOneEngine tests what an engine that runs in dir says of itself, and what it keeps to itself.
func testOneEngine(t *testing.T, e *testengines.Engine, start testengines.Starter, dir string) {
	t.Run("says what it is", func(t *testing.T) {
		if e.Version == "" || e.Source == "" || !strings.HasPrefix(e.String(), e.Name+" "+e.Version) {
			t.Errorf("version %q, source %q, line %q", e.Version, e.Source, e)
		}
	})
	t.Run("keeps its folder to itself", func(t *testing.T) {
		if second, err := start(t.Context(), dir, discard); err == nil {
			t.Errorf("%v also started in the folder of %v", second, e)
		}
	})
	if e.Source != "embedded" {
		t.Run("keeps its log", func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(dir, e.Name+".log")); err != nil {
				t.Error(err)
			}
		})
	}
	if e.Secure != nil {
		t.Run("asks for a password", func(t *testing.T) { testSecure(t, e.Secure) })
	}
}

// life is an engine with what it must have kept.
type life struct {
	engine *testengines.Engine
	store  store
	want   []string
}

// check writes one more value and reads all of them.
func (l *life) check(t *testing.T, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := l.store.write(ctx, l.engine, value); err != nil {
		t.Fatalf("write %q: %v", value, err)
	}
	l.want = append(l.want, value)
	if got, err := l.store.read(ctx, l.engine); err != nil || !slices.Equal(got, l.want) {
		t.Fatalf("read %q, %v, want %q", got, err, l.want)
	}
}

func begin(t *testing.T, start testengines.Starter, dir string) *testengines.Engine {
	t.Helper()
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

// restart takes an engine down and up again. In between, nothing answers at its address.
func restart(t *testing.T, e *testengines.Engine, down func() error) {
	t.Helper()
	begin := time.Now()
	for range 2 { // the second time, there is nothing to do
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

// hostPort returns where an engine listens.
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
