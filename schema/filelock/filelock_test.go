package filelock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"linkstream/schema/filelock"
	"linkstream/schema/testkit"
)

// holderEnv makes this test binary a program that locks the file in this variable, reports the lock, and holds it until
// its input ends.
const holderEnv = "LINKSTREAM_TEST_LOCK"

func TestMain(m *testing.M) {
	path := os.Getenv(holderEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	lock, err := filelock.TryAcquire(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("locked")
	io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(lock)
}

// holder is another process that holds the lock.
type holder struct {
	cmd   *exec.Cmd
	input io.Closer
}

func startHolder(t *testing.T, path string) *holder {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), holderEnv+"="+path), os.Stderr
	input, err := cmd.StdinPipe()
	testkit.Must(t, err)
	output, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return &holder{cmd, input}
}

func lockPath(t *testing.T) string { return filepath.Join(t.TempDir(), "lock") }

func wantHeld(t *testing.T, path string) {
	t.Helper()
	lock, err := filelock.TryAcquire(path)
	if lock != nil || !errors.Is(err, filelock.ErrHeld) || !strings.Contains(err.Error(), path) {
		t.Fatalf("TryAcquire returned %v, %v, want ErrHeld and the path", lock, err)
	}
}

func TestTryAcquire(t *testing.T) {
	t.Run("locks a file that it creates for the owner alone", func(t *testing.T) {
		path := lockPath(t)
		lock, err := filelock.TryAcquire(path)
		testkit.Must(t, err)
		info, err := os.Stat(path)
		testkit.Must(t, err)
		if info.Mode() != 0o600 {
			t.Errorf("mode %v", info.Mode())
		}
		testkit.Must(t, lock.Release())
	})
	t.Run("excludes holders in the same process", func(t *testing.T) {
		path := lockPath(t)
		lock, err := filelock.TryAcquire(path)
		testkit.Must(t, err)
		wantHeld(t, path)
		testkit.Must(t, lock.Release())
		lock, err = filelock.TryAcquire(path)
		testkit.Must(t, err)
		testkit.Must(t, lock.Release())
	})
	t.Run("excludes other processes", func(t *testing.T) {
		path := lockPath(t)
		other := startHolder(t, path)
		wantHeld(t, path)
		testkit.Must(t, other.input.Close())
		testkit.Must(t, other.cmd.Wait())
		lock, err := filelock.TryAcquire(path)
		testkit.Must(t, err)
		testkit.Must(t, lock.Release())
	})
	t.Run("succeeds after kill -9 of the holder", func(t *testing.T) {
		path := lockPath(t)
		other := startHolder(t, path)
		testkit.Must(t, other.cmd.Process.Kill())
		other.cmd.Wait()
		lock, err := filelock.TryAcquire(path)
		testkit.Must(t, err)
		testkit.Must(t, lock.Release())
	})
	t.Run("returns the error of the file system", func(t *testing.T) {
		if _, err := filelock.TryAcquire(filepath.Join(t.TempDir(), "missing", "lock")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAcquire(t *testing.T) {
	t.Run("waits until the holder ends", func(t *testing.T) {
		path := lockPath(t)
		other := startHolder(t, path)
		acquired := make(chan error, 1)
		go func() {
			lock, err := filelock.Acquire(t.Context(), path)
			if err == nil {
				err = lock.Release()
			}
			acquired <- err
		}()
		select {
		case err := <-acquired:
			t.Fatalf("Acquire returned %v while another process holds the lock", err)
		case <-time.After(100 * time.Millisecond):
		}
		testkit.Must(t, other.cmd.Process.Kill())
		other.cmd.Wait()
		testkit.Must(t, <-acquired)
	})
	t.Run("gives up when its context is done", func(t *testing.T) {
		path := lockPath(t)
		lock, err := filelock.TryAcquire(path)
		testkit.Must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if _, err := filelock.Acquire(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		testkit.Must(t, lock.Release())
	})
	t.Run("takes a free lock even if the context is done", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		lock, err := filelock.Acquire(ctx, lockPath(t))
		testkit.Must(t, err)
		testkit.Must(t, lock.Release())
	})
	t.Run("returns the error of the file system", func(t *testing.T) {
		if _, err := filelock.Acquire(t.Context(), filepath.Join(t.TempDir(), "missing", "lock")); !errors.Is(err,
			fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
}
