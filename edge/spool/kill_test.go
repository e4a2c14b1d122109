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
)

// startChild starts this test binary again as one of children, with arguments.
func startChild(t *testing.T, child string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), childEnv+"="+child)
	return cmd
}

// TestKill kills processes with -9 in the midst of their appends. What each one said it had appended must be there.
func TestKill(t *testing.T) {
	const generations, goroutines = 5, 2
	dir := t.TempDir()
	appended := make(map[int64]bool)
	for generation := range generations {
		cmd := startChild(t, "append", dir, strconv.Itoa(generation*1_000_000+1))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ { // until the pipe, too, is empty
			if n == 700+97*generation {
				must(t, cmd.Process.Kill())
			}
			link, err := strconv.ParseInt(lines.Text(), 10, 64)
			must(t, err)
			appended[link] = true
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("the child ended by itself: %v", err)
		}
	}

	s, log, _ := openLogged(t, config(dir, goroutines))
	unsaid := 0
	incarnations := make(map[schema.Incarnation]bool)
	for _, lane := range leftovers(s) {
		incarnations[lane.ID().Incarnation] = true
		for i, c := range read(t, lane) {
			if c.Lane != lane.ID() || c.Seq != uint64(i+1) {
				t.Fatalf("click %d of lane %v is %v %d", i, lane.ID(), c.Lane, c.Seq)
			}
			if !appended[c.LinkID] {
				unsaid++
			}
			delete(appended, c.LinkID)
		}
	}
	equal(t, "incarnations", len(incarnations), generations)
	equal(t, "clicks that are missing", len(appended), 0)
	equal(t, "damage", log.contains("damaged"), false)
	if unsaid > generations*goroutines { // one for each goroutine that was about to speak
		t.Fatalf("%d clicks that nobody appended", unsaid)
	}
}

// appendUntilKilled appends clicks to the spool in the directory of its first argument, on links from the second on, and
// prints each link after its click was appended.
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

// TestDiskRefuses runs in a process of its own, which may write no file longer than a few bytes for a while. To the
// spool that is a full disk: a new segment cannot be allocated.
func TestDiskRefuses(t *testing.T) {
	out, err := startChild(t, "refuse", t.TempDir(), t.TempDir()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func appendWhileDiskRefuses() error {
	log := new(logBuffer)
	logger := slog.New(slog.NewTextHandler(log, nil))
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
	if late.Append(0, click(1)) || late.Dropped() != 1 || !log.contains("spool cannot grow") || late.Ready() == nil {
		return fmt.Errorf("append with a full disk from the start: dropped %d, ready %v", late.Dropped(), late.Ready())
	}
	appended := 0
	for s.Append(0, click(1)) {
		appended++
	}
	if appended == 0 || s.Dropped() != 1 || s.Pending() != uint64(appended) {
		return fmt.Errorf("appended %d, dropped %d, pending %d", appended, s.Dropped(), s.Pending())
	}
	if err := within(func() bool { return log.contains("spool cannot grow") }); err != nil {
		return fmt.Errorf("report of the full disk: %w", err)
	}
	if err := limitFiles(math.MaxInt64); err != nil {
		return err
	}
	if err := within(func() bool { return s.Append(0, click(1)) }); err != nil {
		return fmt.Errorf("append once there is room again: %w", err)
	}
	if err := within(func() bool { return late.Ready() == nil }); err != nil {
		return fmt.Errorf("ready once there is room again: %w", err)
	}
	if err := within(func() bool { return late.Append(0, click(1)) }); err != nil {
		return fmt.Errorf("append to a spool that began without room: %w", err)
	}
	var batch stream.Batch
	if n := s.Lanes()[0].Read(&batch, math.MaxInt); n != appended+1 {
		return fmt.Errorf("read %d clicks of %d", n, appended+1)
	}
	return errors.Join(s.Close(), late.Close())
}

// limitFiles bounds the length of files that this process makes or extends.
func limitFiles(bytes uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = min(bytes, limit.Max)
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &limit)
}
