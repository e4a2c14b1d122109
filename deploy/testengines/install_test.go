package testengines_test

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

	"linkstream/deploy/testengines"
)

func TestInstallHappensOnce(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, fill := range []filler{fillWhole, fillNever} {
		if err := install(t, fill); err != nil {
			t.Error(err)
		}
	}
}

func TestInstallHappensOnceForAllWhoAskAtTheSameTime(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var count atomic.Int32
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			err := install(t, func(ctx context.Context, dir string) error {
				count.Add(1)
				return fillWhole(ctx, dir)
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
}

func TestInstallBeginsAnew(t *testing.T) {
	t.Run("after a failure", func(t *testing.T) {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		if err := install(t, fillNever); err == nil {
			t.Error("the failure was not reported")
		}
		if err := install(t, fillWhole); err != nil {
			t.Error(err)
		}
	})
	t.Run("after a crash", func(t *testing.T) {
		cache := t.TempDir()
		t.Setenv("XDG_CACHE_HOME", cache)
		if err := os.MkdirAll(filepath.Join(cache, "linkstream/engine-1.partial/half"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := install(t, fillWhole); err != nil {
			t.Error(err)
		}
		if half := filepath.Join(cache, "linkstream/engine-1/half"); isThere(half) {
			t.Errorf("%q was kept", half)
		}
	})
}

type filler = func(ctx context.Context, dir string) error

func fillWhole(_ context.Context, dir string) error {
	return os.WriteFile(filepath.Join(dir, "whole"), nil, 0o600)
}

func fillNever(context.Context, string) error { return errors.New("asked to install") }

// install installs engine-1 in the cache that the environment names.
func install(t *testing.T, fill filler) error {
	t.Helper()
	dir, err := testengines.Install(t.Context(), "engine-1", discard, fill)
	if err == nil && !isThere(filepath.Join(dir, "whole")) {
		t.Errorf("%q is not whole", dir)
	}
	return err
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A port that the kernel may give to an outgoing connection is taken sooner or later while its engine is stopped.
func TestPortIsFreeAndNoneThatOutgoingConnectionsGet(t *testing.T) {
	port, err := testengines.FreePort()
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
