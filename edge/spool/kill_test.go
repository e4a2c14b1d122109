package spool_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"linkstream/edge/spool"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// startChild returns a command that runs this test binary as the named one of children.
func startChild(t *testing.T, child string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	testkit.Must(t, err)
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), childEnv+"="+child)
	return cmd
}

// TestDiskFull runs in another process, which limits the size of its files to a few bytes for some time. For the spool
// that is a full disk: it cannot allocate a segment.
func TestDiskFull(t *testing.T) {
	out, err := startChild(t, "disk-full", t.TempDir(), t.TempDir()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func appendWhileDiskFull() error {
	log := new(testkit.Buffer)
	logger := log.Logger()
	s, err := spool.Open(config(os.Args[1], 1), logger)
	if err != nil {
		return err
	}
	if err := limitFiles(100); err != nil {
		return err
	}
	late, err := spool.Open(config(os.Args[2], 1), logger)
	if err != nil {
		return fmt.Errorf("open with a full disk: %w", err)
	}
	if late.Append(0, click(1)) || late.Dropped() != 1 || !log.Contains("cannot create spool segment") ||
		late.Ready() == nil {
		return fmt.Errorf("append with a full disk: dropped %d, ready %v", late.Dropped(), late.Ready())
	}
	appended := 0
	for s.Append(0, click(1)) {
		appended++
	}
	if appended == 0 || s.Dropped() != 1 || s.Pending() != uint64(appended) {
		return fmt.Errorf("appended %d, dropped %d, pending %d", appended, s.Dropped(), s.Pending())
	}
	if err := within(func() bool { return log.Contains("cannot create spool segment") }); err != nil {
		return fmt.Errorf("report of the full disk: %w", err)
	}
	if err := limitFiles(math.MaxInt64); err != nil {
		return err
	}
	if err := within(func() bool { return s.Append(0, click(1)) }); err != nil {
		return fmt.Errorf("append after the disk has room: %w", err)
	}
	if err := within(func() bool { return late.Ready() == nil }); err != nil {
		return fmt.Errorf("ready after the disk has room: %w", err)
	}
	if err := within(func() bool { return late.Append(0, click(1)) }); err != nil {
		return fmt.Errorf("append to the spool that was opened with a full disk: %w", err)
	}
	var batch stream.Batch
	if n := s.Lanes()[0].Read(&batch, math.MaxInt); n != appended+1 {
		return fmt.Errorf("read %d clicks of %d", n, appended+1)
	}
	return errors.Join(s.Close(), late.Close())
}

// within polls until ok returns true.
func within(ok func() bool) error {
	return testkit.Poll(testkit.Patience, func() error {
		if !ok() {
			return errors.New("did not happen")
		}
		return nil
	})
}

// limitFiles limits the size of files that this process writes.
func limitFiles(bytes uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = min(bytes, limit.Max)
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &limit)
}
