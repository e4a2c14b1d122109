package proc

import (
	"os/exec"
	"syscall"
)

// isolate makes the kernel kill cmd when the thread that starts it exits. The process group of its own keeps Ctrl-C away
// from cmd: the parent stops its children in order.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
