//go:build !linux

package proc

import (
	"errors"
	"fmt"
)

// Read is for Linux alone.
func Read(pid int) (Usage, error) {
	return Usage{}, fmt.Errorf("read usage of process %d: %w", pid, errors.ErrUnsupported)
}
