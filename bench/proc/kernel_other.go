//go:build !linux

package proc

import "errors"

// KernelMemory fails: there is no portable way.
func KernelMemory() (int64, error) { return 0, errors.ErrUnsupported }

// MaxFiles returns the limit of open files that systems other than Linux have at least.
func MaxFiles() (int, error) { return 256, nil }
