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
	stopTimeout = 30 * time.Second // from SIGTERM until SIGKILL
	logTail     = 4 << 10          // bytes of a child's log in an error
)

// Child is a process that this process has started. The kernel kills it when this process ends.
type Child struct {
	cmd   *exec.Cmd
	log   string        // file with its standard error
	first chan string   // receives the first line of its standard output
	ended chan struct{} // closed when it has ended
	err   error         // of Wait; read it only after ended is closed
}

// Start starts a program with env and the environment of this process, without the settings of the service
// (LINKSTREAM_…). Its standard error goes to the file log.
func Start(log string, env []string, program string, args ...string) (*Child, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", program, err)
	}
	defer out.Close()
	c := &Child{cmd: exec.Command(program, args...), log: log, first: make(chan string, 1), ended: make(chan struct{})}
	c.cmd.Env = append(withoutSettings(os.Environ()), env...)
	c.cmd.Stdout, c.cmd.Stderr = &firstLine{line: c.first}, out
	c.cmd.WaitDelay = time.Second // for its own children, which may hold its output open
	isolate(c.cmd)
	started := make(chan error)
	go c.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %q: %w", program, err)
	}
	return c, nil
}

// run starts the program and holds its thread until the program has ended. The kernel kills the child when the thread
// that started it exits, not when the process does.
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

// firstLine is a writer that sends the first line and discards the rest.
type firstLine struct {
	begun []byte
	line  chan<- string // nil once the line is sent
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

// FirstLine waits for the first line of the child's standard output.
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

// Await calls ready until it returns nil. It returns an error when the child or ctx ends first.
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

// Usage returns the child's usage so far.
func (c *Child) Usage() (Usage, error) {
	usage, err := Read(c.cmd.Process.Pid)
	if err != nil {
		return Usage{}, errors.Join(err, c.died())
	}
	return usage, nil
}

// Stop sends SIGTERM to the child and waits until it has ended. An exit code other than 0 is an error.
func (c *Child) Stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // fails only after the child has ended
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

// Kill sends SIGKILL to the child and waits until it has ended.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill() // fails only after the child has ended
	<-c.ended
}

// died returns an error with the exit status and the end of the log if the child has ended, otherwise nil.
func (c *Child) died() error {
	select {
	case <-c.ended:
	default:
		return nil
	}
	log, _ := os.ReadFile(c.log) // without the log, the status has to suffice
	return fmt.Errorf("%q ended (%v): %s", c.cmd.Path, c.cmd.ProcessState, log[max(0, len(log)-logTail):])
}
