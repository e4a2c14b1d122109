package testkit_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/schema/testkit"
)

func TestTakes(t *testing.T) {
	const promised = 2 * time.Second
	for _, c := range []struct {
		name       string
		quick      int // the try that takes as long as promised; others take a nanosecond more
		wantFailed bool
	}{
		{"one try is enough", 0, false},
		{"others may be late", 9, false},
		{"ten tries that are late break the promise", 10, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				got, _ := failure(func(tb testing.TB) {
					testkit.Takes(tb, promised, func(try int) {
						testkit.Equal(t, "try", try, tries)
						tries++
						time.Sleep(promised)
						if try != c.quick {
							time.Sleep(time.Nanosecond)
						}
					})
				})
				if (got != "") != c.wantFailed || tries != min(c.quick+1, 10) {
					t.Errorf("failure %q after %d tries", got, tries)
				}
			})
		})
	}
}

func TestFollows(t *testing.T) {
	const promised = time.Second
	// follow makes changes that take effect after delay. Making one takes longer than promised.
	follow := func(delay time.Duration) (changes int, failed string) {
		failed, _ = failure(func(tb testing.TB) {
			testkit.Follows(tb, promised, func(int) func() error {
				changes++
				time.Sleep(2 * promised)
				made := time.Now()
				return func() error {
					if time.Since(made) < delay {
						return errors.New("not yet")
					}
					return nil
				}
			})
		})
		return changes, failed
	}
	for _, c := range []struct {
		name    string
		delay   time.Duration
		changes int
		failed  string
	}{
		{"counts from the end of the change", promised - 20*time.Millisecond, 1, ""},
		{"fails if each change takes effect too late", promised + 20*time.Millisecond, 10, "1.0"},
		{"fails at once if a change takes no effect", time.Hour, 1, "not yet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				changes, failed := follow(c.delay)
				if changes != c.changes || (failed == "") != (c.failed == "") || !strings.Contains(failed, c.failed) {
					t.Errorf("failure %q after %d changes", failed, changes)
				}
			})
		})
	}
}

func TestPromisesOnABusyMachine(t *testing.T) {
	const promised, took = time.Second, 10 * time.Second
	for _, c := range []struct {
		name       string
		busy       func(try int) bool
		late       int // tries that are late
		wantTries  int
		wantFailed bool
	}{
		{"tries on a busy machine do not count", func(try int) bool { return try < 10 }, 15, 16, false},
		{"the others count", func(try int) bool { return try < 10 }, 100, 20, true},
		{"few are enough in the end", func(try int) bool { return try != 3 && try != 5 && try != 7 }, 100, 25, true},
		{"there is no verdict on fewer", func(try int) bool { return try != 3 && try != 5 }, 100, 25, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				got, _ := failure(func(tb testing.TB) {
					testkit.Keeps(tb, promised, func(try int) (time.Duration, bool) {
						tries++
						time.Sleep(took)
						if try < c.late {
							return took, c.busy(try)
						}
						return promised, true
					})
				})
				if (got != "") != c.wantFailed || tries != c.wantTries {
					t.Errorf("failure %q after %d tries", got, tries)
				}
			})
		})
	}
}

// watchEnv makes this program watch how it waits for lines, and print whether it got a CPU meanwhile.
const watchEnv = "LINKSTREAM_TEST_WATCH"

func TestMain(m *testing.M) {
	if os.Getenv(watchEnv) == "" {
		os.Exit(m.Run())
	}
	lines := bufio.NewScanner(os.Stdin)
	for fmt.Println("watching"); ; {
		_, busy := testkit.Watch(func() {
			if !lines.Scan() {
				os.Exit(0)
			}
		})
		fmt.Println(busy)
	}
}

// A program that is stopped gets no CPU.
func TestWatchSeesThatTheMachineIsBusy(t *testing.T) {
	program, err := os.Executable()
	testkit.Must(t, err)
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), watchEnv+"=1")
	in, err := cmd.StdinPipe()
	testkit.Must(t, err)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	lines.Scan() // watching
	testkit.Eventually(t, "the program says that the machine is busy", func() bool {
		testkit.Must(t, cmd.Process.Signal(syscall.SIGSTOP))
		time.Sleep(100 * time.Millisecond)
		testkit.Must(t, cmd.Process.Signal(syscall.SIGCONT))
		_, err := io.WriteString(in, "go on\n")
		testkit.Must(t, err)
		return lines.Scan() && lines.Text() == "true"
	})
	testkit.Must(t, in.Close())
	testkit.Must(t, cmd.Wait())
}
