package testengines

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// NoLimit ends a limit of LimitFiles.
const NoLimit = math.MaxUint64

// LimitFiles limits the size of the files that a running process writes, in bytes. A write beyond fails, as on a full
// disk. A process that it starts later has the same limit.
func LimitFiles(pid int, bytes uint64) error {
	var limit unix.Rlimit
	err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &limit)
	if err == nil {
		limit.Cur = min(bytes, limit.Max)
		err = unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil)
	}
	if err != nil {
		return fmt.Errorf("limit files of process %d: %w", pid, err)
	}
	return nil
}

// LimitFiles limits the size of the files that the engine writes until it ends, see the function. It does not affect
// other processes that the engine has started. An engine may end itself then, as Kafka does on a full disk: that is not
// logged as unexpected. errors.ErrUnsupported for an engine that does not run.
func (e *Engine) LimitFiles(bytes uint64) error {
	return e.do("limit files of", func(s server) error {
		p, ok := s.(*process)
		if !ok || p.running == nil {
			return errors.ErrUnsupported
		}
		p.running.serving.Store(false)
		return LimitFiles(p.running.cmd.Process.Pid, bytes)
	})
}
