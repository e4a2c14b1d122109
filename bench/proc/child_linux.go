package proc

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolate makes the kernel kill cmd when the thread that starts it exits. The process group of its own keeps Ctrl-C away
// from cmd: the parent stops its children in order.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// pin keeps the thread that calls it on one CPU.
func pin(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(0, &set))
}
