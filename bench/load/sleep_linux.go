package load

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleep is more exact than time.Sleep, which wakes up to a millisecond late: the runtime waits in whole ones. A signal
// ends it early.
func sleep(d time.Duration) {
	request := unix.NsecToTimespec(int64(d))
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &request, nil)
}
