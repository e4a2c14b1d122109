package testengines_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"linkstream/deploy/tools/engines/testengines"
)

func TestInstallHappensOnce(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, fill := range []filler{fillDir, failToFill} {
		if err := install(t, fill); err != nil {
			t.Error(err)
		}
	}
}

func TestConcurrentInstallsHappenOnce(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var count atomic.Int32
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			err := install(t, func(ctx context.Context, dir string) error {
				count.Add(1)
				return fillDir(ctx, dir)
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

func TestInstallStartsOver(t *testing.T) {
	t.Run("after a failure", func(t *testing.T) {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		if err := install(t, failToFill); err == nil {
			t.Error("install returned no error")
		}
		if err := install(t, fillDir); err != nil {
			t.Error(err)
		}
	})
	t.Run("after a crash", func(t *testing.T) {
		cache := t.TempDir()
		t.Setenv("XDG_CACHE_HOME", cache)
		if err := os.MkdirAll(filepath.Join(cache, "linkstream/engine-1.partial/rest"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := install(t, fillDir); err != nil {
			t.Error(err)
		}
		if rest := filepath.Join(cache, "linkstream/engine-1/rest"); exists(rest) {
			t.Errorf("%q is left of the crashed install", rest)
		}
	})
}

type filler = func(ctx context.Context, dir string) error

func fillDir(_ context.Context, dir string) error {
	return os.WriteFile(filepath.Join(dir, "complete"), nil, 0o600)
}

func failToFill(context.Context, string) error { return errors.New("cannot fill the folder") }

// install installs engine-1 in the cache named by the environment and requires that it is complete.
func install(t *testing.T, fill filler) error {
	t.Helper()
	dir, err := testengines.Install(t.Context(), "engine-1", discard, fill)
	if err == nil && !exists(filepath.Join(dir, "complete")) {
		t.Errorf("%q is not complete", dir)
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
