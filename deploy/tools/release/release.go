package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// commitTime returns the time of the last commit. The source must be what was committed, or SOURCE_DATE_EPOCH be set.
func commitTime(ctx context.Context) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("git status: %w", err)
		}
		if len(changed) > 0 {
			return time.Time{}, fmt.Errorf("the source has changes that are not committed:\n%s", changed)
		}
		out, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("git log: %w", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("time of the source: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// release is what is being built.
type release struct {
	version   string
	time      time.Time // of every file
	out       string
	dir       string // of the programs
	platforms []string
	stderr    io.Writer
	bom       map[string]module
}

// command runs a command in the current folder.
func (r *release) command(ctx context.Context, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), append(env, "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.time.Unix(), 10))...)
	cmd.Stdout, cmd.Stderr = r.stderr, r.stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(append([]string{name}, args...), " "), err)
	}
	return nil
}

// buildPackages builds the Debian packages.
func (r *release) buildPackages(ctx context.Context) error {
	out, err := filepath.Abs(r.out)
	if err != nil {
		return err
	}
	for _, p := range r.platforms {
		arch, linux := strings.CutPrefix(p, "linux/")
		if !linux {
			continue
		}
		err := r.command(ctx, nil, "deploy/systemd/build-deb", r.version, arch, out, r.programsOf("linux", arch))
		if err != nil {
			return err
		}
	}
	return nil
}

// sign signs the checksums, as deploy/manual/operate.md verifies them.
func (r *release) sign(ctx context.Context, key string) error {
	return r.command(ctx, nil, "ssh-keygen", "-Y", "sign", "-q", "-f", key, "-n", signatureNamespace,
		filepath.Join(r.out, sumsName))
}
