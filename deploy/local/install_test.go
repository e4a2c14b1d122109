package local_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"linkstream/deploy/local"
)

func TestInstall(t *testing.T) {
	fill := func(_ context.Context, dir string) error {
		return os.WriteFile(filepath.Join(dir, "whole"), nil, 0o600)
	}
	install := func(t *testing.T, fill func(context.Context, string) error) error {
		t.Helper()
		dir, err := local.Install(t.Context(), "engine-1", discard, fill)
		if err == nil && !isWhole(dir) {
			t.Errorf("%q is not whole", dir)
		}
		return err
	}
	never := func(context.Context, string) error { return errors.New("installed again") }

	t.Run("happens once", func(t *testing.T) {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		for _, f := range []func(context.Context, string) error{fill, never} {
			if err := install(t, f); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("happens once for all who ask at the same time", func(t *testing.T) {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		var count atomic.Int32
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				err := install(t, func(ctx context.Context, dir string) error {
					count.Add(1)
					return fill(ctx, dir)
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if count.Load() != 1 {
			t.Errorf("installed %d times", count.Load())
		}
	})
	t.Run("begins anew after a failure", func(t *testing.T) {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		if err := install(t, never); err == nil {
			t.Error("the failure was not reported")
		}
		if err := install(t, fill); err != nil {
			t.Error(err)
		}
	})
	t.Run("begins anew after a crash", func(t *testing.T) {
		cache := t.TempDir()
		t.Setenv("XDG_CACHE_HOME", cache)
		if err := os.MkdirAll(filepath.Join(cache, "linkstream/engine-1.partial/half"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := install(t, fill); err != nil {
			t.Error(err)
		}
		if half := filepath.Join(cache, "linkstream/engine-1/half"); isThere(half) {
			t.Errorf("%q was kept", half)
		}
	})
}

func isWhole(dir string) bool { return isThere(filepath.Join(dir, "whole")) }

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A port that the kernel may give to an outgoing connection is taken sooner or later while its engine is stopped.
func TestPortIsFreeAndNoneThatOutgoingConnectionsGet(t *testing.T) {
	port, err := local.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	if port < 1024 || port >= 32768 {
		t.Errorf("port %d is not from 1024 to 32767", port)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
}
