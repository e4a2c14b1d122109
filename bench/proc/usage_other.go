//go:build !linux

package proc

import (
	"errors"
	"fmt"
)

// Read returns errors.ErrUnsupported: it is implemented for Linux only.
func Read(pid int) (Usage, error) {
	return Usage{}, fmt.Errorf("read usage of process %d: %w", pid, errors.ErrUnsupported)
}
