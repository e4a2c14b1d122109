package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const startTimeout = time.Minute // of a child, until its first line

// Process is a process whose usage can be read.
type Process struct {
	Name  string
	Usage func() (Usage, error)
	PIDs  []int // of processes that this process has not started, without their descendants
}

// Sum returns several processes as one.
func Sum(name string, processes ...Process) Process {
	return Process{Name: name, Usage: func() (sum Usage, err error) {
		for _, p := range processes {
			usage, err := p.Usage()
			if err != nil {
				return Usage{}, err
			}
			sum.CPU += usage.CPU
			sum.RSS += usage.RSS
		}
		return sum, nil
	}}
}

// ReadAll returns the usage of each process.
func ReadAll(processes []Process) (all []Usage, err error) {
	for _, p := range processes {
		usage, err := p.Usage()
		if err != nil {
			return nil, err
		}
		all = append(all, usage)
	}
	return all, nil
}

// Group holds the child processes and the files of one run. Its methods must not be called concurrently.
type Group struct {
	dir     string
	closers []func() error
}

// NewGroup returns a group with an empty directory.
func NewGroup() (*Group, error) {
	dir, err := os.MkdirTemp("", "linkstream-bench-")
	if err != nil {
		return nil, fmt.Errorf("create directory of a run: %w", err)
	}
	return &Group{dir: dir}, nil
}

// Path returns a path inside the group's directory, which Close removes.
func (g *Group) Path(elem ...string) string {
	return filepath.Join(append([]string{g.dir}, elem...)...)
}

// OnClose makes Close call f. Close calls the functions in the reverse order of their registration.
func (g *Group) OnClose(f func() error) { g.closers = append(g.closers, f) }

// Close calls the registered functions, kills the children and removes the directory.
func (g *Group) Close() error {
	var errs []error
	for i := len(g.closers) - 1; i >= 0; i-- {
		errs = append(errs, g.closers[i]())
	}
	return errors.Join(append(errs, os.RemoveAll(g.dir))...)
}

// Start starts a program whose log goes to the group's directory, see the function Start. Close kills the child. A
// child that must stop in order needs its Stop registered with OnClose as well.
func (g *Group) Start(name string, env []string, program string, args ...string) (*Child, error) {
	child, err := Start(g.Path(strings.NewReplacer(" ", "-", "/", "-").Replace(name)+".log"), env, program, args...)
	if err != nil {
		return nil, err
	}
	g.OnClose(func() error { child.Kill(); return nil })
	return child, nil
}

// StartSelf starts this program with args and returns the first line that it writes.
func (g *Group) StartSelf(ctx context.Context, name string, args ...string) (*Child, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	child, err := g.Start(name, nil, self, args...)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	line, err := child.FirstLine(ctx)
	return child, line, err
}

// Role is a server that this program runs as a child of itself, so that its CPU time is known. It writes its address to
// stdout once it serves, and runs until ctx is done.
type Role struct {
	Name string
	Run  func(ctx context.Context, args []string, stdout, stderr io.Writer) error
}
