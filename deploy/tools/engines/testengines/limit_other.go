//go:build !linux

package testengines

import (
	"errors"
	"math"
)

// NoLimit ends a limit of LimitFiles.
const NoLimit = math.MaxUint64

// LimitFiles fails: there is no portable way to limit another process.
func LimitFiles(int, uint64) error { return errors.ErrUnsupported }

// LimitFiles fails, see the function.
func (e *Engine) LimitFiles(uint64) error { return errors.ErrUnsupported }
