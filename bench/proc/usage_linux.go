package proc

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Read returns the usage of a process with all of its threads, without its children.
func Read(pid int) (Usage, error) {
	// The CPU-time clock of another process, see clock_getcpuclockid(3). It counts nanoseconds; /proc/PID/stat counts
	// multiples of ten milliseconds.
	const sched = 2
	var cpu unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &cpu); err != nil {
		return Usage{}, fmt.Errorf("read CPU time of process %d: %w", pid, err)
	}
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("read memory of process %d: %w", pid, err)
	}
	var total, resident int64
	if _, err := fmt.Sscan(string(statm), &total, &resident); err != nil {
		return Usage{}, fmt.Errorf("read memory of process %d: %w", pid, err)
	}
	return Usage{CPU: time.Duration(cpu.Nano()), RSS: resident * int64(os.Getpagesize())}, nil
}
