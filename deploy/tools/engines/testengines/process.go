package testengines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// pingEvery is the time between two pings of a program that starts.
const pingEvery = 50 * time.Millisecond

// process is an engine that runs as a program. Its methods are not safe for concurrent use.
type process struct {
	log    *slog.Logger
	output string         // file to which the program's output is appended
	quit   syscall.Signal // the signal that stops the program
	mark   string         // if not empty: text in the command lines of the program and its children, and in no others

	prepare func(ctx context.Context) error // makes the data ready, before each start
	command func() (*exec.Cmd, error)
	ping    func(ctx context.Context) error // returns nil when the program answers clients

	running *child
}

// child is one run of a program.
type child struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the program has ended

	serving atomic.Bool // true from its first answer until it is told to stop, or its files are limited
}

func (p *process) start(ctx context.Context) error {
	if p.running != nil && !p.running.hasEnded() {
		return nil
	}
	// After a kill of an earlier program, children of it may still use the data.
	if err := killMarked(ctx, p.mark); err != nil {
		return err
	}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	out, err := os.OpenFile(p.output, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer out.Close()
	from, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	if p.running, err = p.spawn(out); err != nil {
		return err
	}
	if err := p.awaitAnswer(ctx); err != nil {
		said, _ := io.ReadAll(io.NewSectionReader(out, from, 1<<20))
		return errors.Join(fmt.Errorf("%w; output: %s", err, last(string(said), 2000)), p.kill())
	}
	p.running.serving.Store(true)
	return nil
}

// spawn starts the program. The goroutine that starts it stays on its thread until the program has ended, because the
// kernel sends the parent-death signal when that thread ends.
func (p *process) spawn(out *os.File) (*child, error) {
	cmd, err := p.command()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, ended: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = out, out
	dieWithParent(c.cmd)
	c.cmd.SysProcAttr.Setpgid = true // Ctrl-C must reach the parent only, which stops programs in order
	started := make(chan error, 1)
	go func() {
		defer close(c.ended)
		runtime.LockOSThread()
		err := c.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		err = c.cmd.Wait()
		if c.serving.Load() {
			p.log.Error("engine ended unexpectedly", "error", err, "log", p.output)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

func (p *process) awaitAnswer(ctx context.Context) error {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		err := p.ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-p.running.ended:
			return fmt.Errorf("the program ended: %v", p.running.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("wait for an answer: %w: %w", ctx.Err(), err)
		}
	}
}

func (p *process) stop() error {
	if p.running == nil || p.running.hasEnded() {
		return nil
	}
	p.running.end(p.quit)
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	select {
	case <-p.running.ended:
		return nil
	case <-timeout.C:
		return errors.Join(fmt.Errorf("the program did not stop within %v", stopTimeout), p.kill())
	}
}

func (p *process) kill() error {
	if p.running == nil {
		return nil
	}
	p.running.end(syscall.SIGKILL)
	<-p.running.ended
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return killMarked(ctx, p.mark)
}

// end sends a signal that ends the program.
func (c *child) end(sig syscall.Signal) {
	c.serving.Store(false)
	_ = c.cmd.Process.Signal(sig) // fails only if the program has ended
}

func (c *child) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}
