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

// pingEvery is how often a program that starts is asked whether it has.
const pingEvery = 50 * time.Millisecond

// process is an engine that is a program. Its methods are not safe for concurrent use.
type process struct {
	log    *slog.Logger
	output string         // file to which the program's output is appended
	quit   syscall.Signal // asks the program to stop
	mark   string         // if not empty: stands in the command lines of the program and its children, and in no other

	prepare func(ctx context.Context) error // makes the data what the program expects, before each start
	command func() (*exec.Cmd, error)
	ping    func(ctx context.Context) error // nil once clients are answered

	running *child
}

// child is one run of a program.
type child struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has been waited for

	serving atomic.Bool // from its first answer until it is told to end
}

func (p *process) start(ctx context.Context) error {
	if p.running != nil && !p.running.over() {
		return nil
	}
	// Children of a program that died with an earlier parent may still be at its data.
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
		return errors.Join(fmt.Errorf("%w; it said: %s", err, last(string(said), 2000)), p.kill())
	}
	p.running.serving.Store(true)
	return nil
}

// spawn starts the program. The goroutine that starts it stays on its thread until the program has ended, because the
// kernel takes the death of the thread for the death of the parent.
func (p *process) spawn(out *os.File) (*child, error) {
	cmd, err := p.command()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, ended: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = out, out
	dieWithParent(c.cmd)
	c.cmd.SysProcAttr.Setpgid = true // Ctrl-C is for the parent, which has an order in which it stops things
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
			p.log.Error("engine ended by itself", "error", err, "log", p.output)
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
			return fmt.Errorf("it ended: %v", p.running.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("wait for an answer: %w: %w", ctx.Err(), err)
		}
	}
}

func (p *process) stop() error {
	if p.running == nil || p.running.over() {
		return nil
	}
	p.running.end(p.quit)
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	select {
	case <-p.running.ended:
		return nil
	case <-timeout.C:
		return errors.Join(fmt.Errorf("it did not stop within %v", stopTimeout), p.kill())
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

// end sends a signal that will end the program.
func (c *child) end(sig syscall.Signal) {
	c.serving.Store(false)
	_ = c.cmd.Process.Signal(sig) // fails only if it has ended
}

func (c *child) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}
