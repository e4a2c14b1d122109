package proc_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linkstream/bench/proc"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 2 * time.Minute

// start runs a shell script as a child.
func start(t *testing.T, script string, env ...string) *proc.Child {
	t.Helper()
	child, err := proc.Start(proc.AnyCPU, filepath.Join(t.TempDir(), "log"), env, "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(child.Kill)
	return child
}

// firstLine waits for what the child writes first.
func firstLine(t *testing.T, c *proc.Child) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	line, err := c.FirstLine(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestChild(t *testing.T) {
	t.Run("Stop ends it with SIGTERM", func(t *testing.T) {
		c := start(t, `trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done`)
		firstLine(t, c)
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Run("an exit code other than 0 is an error with the end of the log", func(t *testing.T) {
		c := start(t, `trap 'echo "clicks were lost" >&2; exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
		firstLine(t, c)
		if err := c.Stop(); err == nil || !strings.Contains(err.Error(), "clicks were lost") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("FirstLine returns the first line of many", func(t *testing.T) {
		c := start(t, `echo 127.0.0.1:1234; seq 100000; exec sleep 60`)
		if line := firstLine(t, c); line != "127.0.0.1:1234" {
			t.Errorf("line %q", line)
		}
	})
	t.Run("FirstLine returns an error when it ends first", func(t *testing.T) {
		c := start(t, `echo "no such file" >&2; exit 1`)
		if _, err := c.FirstLine(t.Context()); err == nil || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("Await returns when it is ready", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ready")
		c := start(t, `touch "$FILE"; exec sleep 60`, "FILE="+file)
		err := c.Await(t.Context(), func(context.Context) error {
			_, err := os.Stat(file)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("Await returns an error when it ends first", func(t *testing.T) {
		c := start(t, `echo "port is taken" >&2; exit 1`)
		err := c.Await(t.Context(), func(context.Context) error { return errors.New("not ready") })
		if err == nil || !strings.Contains(err.Error(), "port is taken") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("does not inherit the settings of this process", func(t *testing.T) {
		t.Setenv("LINKSTREAM_DATA", "elsewhere")
		c := start(t, `echo "$LINKSTREAM_DATA,$LINKSTREAM_LOG_LEVEL"; exec sleep 60`, "LINKSTREAM_LOG_LEVEL=warn")
		if line := firstLine(t, c); line != ",warn" {
			t.Errorf("line %q", line)
		}
	})
	t.Run("a missing program is an error", func(t *testing.T) {
		if _, err := proc.Start(proc.AnyCPU, filepath.Join(t.TempDir(), "log"), nil, "/no/such/program"); err == nil {
			t.Error("no error")
		}
	})
}

func TestUsage(t *testing.T) {
	t.Run("CPU time agrees with getrusage", func(t *testing.T) {
		before, err := proc.Self()
		if err != nil {
			t.Fatal(err)
		}
		for used := time.Duration(0); used < 100*time.Millisecond; {
			after, err := proc.Self()
			if err != nil {
				t.Fatal(err)
			}
			used = after.CPU - before.CPU
		}
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			t.Fatal(err)
		}
		self, err := proc.Self()
		if err != nil {
			t.Fatal(err)
		}
		accounted := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		if diff := self.CPU - accounted; diff < -20*time.Millisecond || diff > patience {
			t.Errorf("read %v, the kernel says %v", self.CPU, accounted)
		}
		if self.RSS < 1<<20 {
			t.Errorf("%d bytes of memory", self.RSS)
		}
	})
	t.Run("of a child", func(t *testing.T) {
		c := start(t, `i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; exec sleep 60`)
		firstLine(t, c)
		usage, err := c.Usage()
		if err != nil || usage.CPU < time.Millisecond || usage.RSS <= 0 {
			t.Errorf("usage %+v, error %v", usage, err)
		}
	})
	t.Run("of a child that has ended", func(t *testing.T) {
		c := start(t, `echo "out of memory" >&2`)
		c.Kill()
		if _, err := c.Usage(); err == nil {
			t.Error("no error")
		}
	})
}

func TestThisMachine(t *testing.T) {
	m := proc.ThisMachine()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if m.CPU == "" || m.Cores < 1 || !strings.HasPrefix(m.Kernel, "linux ") || m.Go == "" {
		t.Errorf("%+v", m)
	}
	if strings.Contains(m.CPU+m.Kernel, name) {
		t.Errorf("%+v names the machine %q", m, name)
	}
}

func TestListening(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer listener.Close()
	addr := listener.Addr().String()
	t.Run("finds the process and its descendants", func(t *testing.T) {
		p, err := proc.Listening("this", addr)
		testkit.Must(t, err)
		alone, err := p.Usage()
		testkit.Must(t, err)
		if alone.CPU <= 0 {
			t.Errorf("usage %+v", alone)
		}
		c := start(t, `i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; exec sleep 60`)
		firstLine(t, c)
		child, err := c.Usage()
		testkit.Must(t, err)
		both, err := p.Usage()
		testkit.Must(t, err)
		if both.CPU < alone.CPU+child.CPU {
			t.Errorf("%+v with a child of %+v", both, child)
		}
		c.Kill()
		const rounded = 20 * time.Millisecond // of user and system time
		if without, err := p.Usage(); err != nil || without.CPU < alone.CPU+child.CPU-rounded {
			t.Errorf("%+v, error %v, when a child of %+v has ended", without, err, child)
		}
	})
	t.Run("fails for addresses elsewhere and for ports without a process", func(t *testing.T) {
		for _, addr := range []string{"192.0.2.1:80", "127.0.0.1:1", "127.0.0.1"} {
			if _, err := proc.Listening("nobody", addr); err == nil {
				t.Errorf("found a process at %s", addr)
			}
		}
	})
}
