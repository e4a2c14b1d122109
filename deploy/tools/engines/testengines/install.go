package testengines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"linkstream/schema/filelock"
)

// installTimeout bounds an installation, including the wait for another process that installs the same.
const installTimeout = 8 * time.Minute

// filler installs something in an empty folder.
type filler func(ctx context.Context, dir string) error

// install returns the folder called name in the user's cache. If it does not exist, fill fills it, in one process at a
// time. The folder gets its name when it is complete, so a crash never leaves an incomplete one under that name.
func install(ctx context.Context, name string, log *slog.Logger, fill filler) (dir string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache folder: %w", err)
	}
	root := filepath.Join(cache, "linkstream")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", fmt.Errorf("make cache folder: %w", err)
	}
	dir = filepath.Join(root, name)
	if exists(dir) {
		return dir, nil
	}

	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	lock, err := filelock.Acquire(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if exists(dir) { // another process has installed it
		return dir, nil
	}
	log.Info("install engine", "folder", dir)
	begin := time.Now()
	if err := fillAtomically(ctx, dir, fill); err != nil {
		return "", fmt.Errorf("install %q: %w", dir, err)
	}
	log.Info("engine installed", "folder", dir, "after", time.Since(begin).Round(time.Millisecond))
	return dir, nil
}

func fillAtomically(ctx context.Context, dir string, fill filler) error {
	partial := dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := os.Mkdir(partial, 0o700); err != nil {
		return err
	}
	if err := fill(ctx, partial); err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	// Without it, after a power failure the folder could have its name but not the contents of its files.
	if err := syncFilesystem(partial); err != nil {
		return fmt.Errorf("sync %q: %w", partial, err)
	}
	return os.Rename(partial, dir)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// run runs a program of this machine to its end and returns its output. The error holds the last lines of it.
func run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	return output(cmd)
}

// output is run for a prepared command.
func output(cmd *exec.Cmd) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second // a grandchild that keeps the pipe open must not delay the return once ctx is done
	dieWithParent(cmd)          // it must not write on to a folder that another process has locked
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run %s: %w: %s", strings.Join(cmd.Args, " "), err, last(out.String(), 1000))
	}
	return out.String(), nil
}

// last returns the last lines of s, at most about n bytes.
func last(s string, n int) string {
	s = strings.TrimSpace(s)
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	return "… " + s[strings.IndexByte(s, '\n')+1:]
}
