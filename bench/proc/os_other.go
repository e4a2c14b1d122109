//go:build !linux

package proc

import (
	"errors"
	"fmt"
	"os/exec"
	"time"
)

func isolate(*exec.Cmd) {}

// Nap sleeps.
func Nap(d time.Duration) { time.Sleep(d) }

// Read returns errors.ErrUnsupported: it is implemented for Linux only.
func Read(pid int) (Usage, error) {
	return Usage{}, fmt.Errorf("read usage of process %d: %w", pid, errors.ErrUnsupported)
}

// ReadMachine returns errors.ErrUnsupported: it is implemented for Linux only.
func ReadMachine([]int) (MachineUse, error) { return MachineUse{}, errors.ErrUnsupported }

// Listening returns errors.ErrUnsupported: it is implemented for Linux only.
func Listening(_, addr string) (Process, error) {
	return Process{}, fmt.Errorf("find the process at %s: %w", addr, errors.ErrUnsupported)
}
