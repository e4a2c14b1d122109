package spool_test

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"linkstream/edge/spool"
	"linkstream/schema"
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

// TestKill kills processes with SIGKILL while they append. Every click that a process reported as appended must be
// found.
func TestKill(t *testing.T) {
	const generations, goroutines = 5, 2
	dir := t.TempDir()
	appended := make(map[int64]bool)
	for generation := range generations {
		cmd := startChild(t, "append", dir, strconv.Itoa(generation*1_000_000+1))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		testkit.Must(t, err)
		testkit.Must(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ { // until the pipe is empty
			if n == 700+97*generation {
				testkit.Must(t, cmd.Process.Kill())
			}
			link, err := strconv.ParseInt(lines.Text(), 10, 64)
			testkit.Must(t, err)
			appended[link] = true
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("the child ended by itself: %v", err)
		}
	}

	s, log, _ := openLogged(t, config(dir, goroutines))
	unreported := 0
	incarnations := make(map[schema.Incarnation]bool)
	for _, lane := range recovered(s) {
		incarnations[lane.ID().Incarnation] = true
		for i, c := range read(t, lane) {
			if c.Lane != lane.ID() || c.Seq != uint64(i+1) {
				t.Fatalf("click %d of lane %v is %v %d", i, lane.ID(), c.Lane, c.Seq)
			}
			if !appended[c.LinkID] {
				unreported++
			}
			delete(appended, c.LinkID)
		}
	}
	testkit.Equal(t, "incarnations", len(incarnations), generations)
	testkit.Equal(t, "clicks that are missing", len(appended), 0)
	testkit.Equal(t, "damage", log.Contains("damaged"), false)
	if unreported > generations*goroutines { // one per goroutine, between append and report
		t.Fatalf("%d clicks that were not appended", unreported)
	}
}

// appendUntilKilled takes a directory and a number as arguments. It appends clicks on links from that number on to the
// spool in the directory, and prints each link after it has appended the click.
func appendUntilKilled() error {
	first, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err != nil {
		return err
	}
	s, err := spool.Open(config(os.Args[1], 2), slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	full := make(chan error)
	for i := range int64(2) {
		go func() {
			for link := first + i; s.Append(uint64(i), click(link)); link += 2 {
				fmt.Printf("%d\n", link)
			}
			full <- errors.New("the spool is full")
		}()
	}
	return <-full
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
