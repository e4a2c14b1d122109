package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	stopTimeout = 30 * time.Second // from SIGTERM to the end, after which it is SIGKILL
	lastWords   = 4 << 10          // bytes of a child's log that an error quotes
)

// Child is a process that was started here and dies with this one.
type Child struct {
	cmd   *exec.Cmd
	log   string        // file with what it has written to standard error
	first chan string   // the first line that it writes to standard output
	ended chan struct{} // closed when it has ended
	err   error         // how it ended; to be read after that
}

// Start starts a program with the environment of this one, except for the service's own settings (LINKSTREAM_…), and
// env. What it writes to standard error goes to the file log.
func Start(log string, env []string, program string, args ...string) (*Child, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", program, err)
	}
	defer out.Close()
	c := &Child{cmd: exec.Command(program, args...), log: log, first: make(chan string, 1), ended: make(chan struct{})}
	c.cmd.Env = append(withoutSettings(os.Environ()), env...)
	c.cmd.Stdout, c.cmd.Stderr = &firstLine{line: c.first}, out
	c.cmd.WaitDelay = time.Second // for children of its own that outlive it
	isolate(c.cmd)
	started := make(chan error)
	go c.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %q: %w", program, err)
	}
	return c, nil
}

// run starts the program and stays on its thread until it has ended, because the kernel takes the death of the thread
// for the death of the parent.
func (c *Child) run(started chan<- error) {
	defer close(c.ended)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.cmd.Start()
	started <- err
	if err == nil {
		c.err = c.cmd.Wait()
	}
}

// firstLine takes what a child writes to standard output and keeps the first line of it.
type firstLine struct {
	begun []byte
	line  chan<- string // nil once it was sent
}

func (f *firstLine) Write(p []byte) (int, error) {
	if f.line != nil {
		f.begun = append(f.begun, p...)
		if line, _, whole := bytes.Cut(f.begun, []byte("\n")); whole {
			f.line <- string(line)
			f.line, f.begun = nil, nil
		}
	}
	return len(p), nil
}

func withoutSettings(env []string) (others []string) {
	for _, v := range env {
		if !strings.HasPrefix(v, "LINKSTREAM_") {
			others = append(others, v)
		}
	}
	return others
}

// FirstLine returns the first line that the child writes to standard output.
func (c *Child) FirstLine(ctx context.Context) (string, error) {
	select {
	case line := <-c.first:
		return line, nil
	case <-c.ended:
		return "", c.died()
	case <-ctx.Done():
		return "", fmt.Errorf("wait for %q: %w", c.cmd.Path, ctx.Err())
	}
}

// Await calls ready until it returns nil, or the child ends, or ctx does.
func (c *Child) Await(ctx context.Context, ready func(context.Context) error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-c.ended:
			return c.died()
		case <-ctx.Done():
			return fmt.Errorf("wait for %q: %w: %w", c.cmd.Path, ctx.Err(), err)
		}
	}
}

// Usage returns what the child has used.
func (c *Child) Usage() (Usage, error) {
	usage, err := Read(c.cmd.Process.Pid)
	if err != nil {
		return Usage{}, errors.Join(err, c.died())
	}
	return usage, nil
}

// Stop asks the child to end as a supervisor does, and returns when it has.
func (c *Child) Stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
	select {
	case <-c.ended:
	case <-time.After(stopTimeout):
		c.Kill()
		return fmt.Errorf("%q did not stop within %v", c.cmd.Path, stopTimeout)
	}
	if c.err != nil {
		return c.died()
	}
	return nil
}

// Kill ends the child at once.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill() // fails only if it has ended
	<-c.ended
}

// died says how the child ended, if it has, and what it said before.
func (c *Child) died() error {
	select {
	case <-c.ended:
	default:
		return nil
	}
	said, _ := os.ReadFile(c.log) // without it, the error has to do
	return fmt.Errorf("%q ended (%v): %s", c.cmd.Path, c.cmd.ProcessState, said[max(0, len(said)-lastWords):])
}
