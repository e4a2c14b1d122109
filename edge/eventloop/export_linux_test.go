package eventloop

import "time"

// IdleWindow is idleWindow.
const IdleWindow = idleWindow

// Spare is spare for tests.
type Spare struct{ spare }

// Found is told whether all loops are busy at a time, and for how long CPUs have been idle in total.
func (s *Spare) Found(now time.Duration, busy bool, idle time.Duration) bool {
	return s.found(now, busy, func() time.Duration { return idle })
}

// IdleCPUs is idleCPUs.
func IdleCPUs() time.Duration { return idleCPUs() }

// PretendIdle has servers find an idle CPU all the time, until the function that it returns is called.
func PretendIdle() (restore func()) {
	before := idleCPUs
	idleCPUs = func() time.Duration { return time.Duration(time.Now().UnixNano()) }
	return func() { idleCPUs = before }
}
