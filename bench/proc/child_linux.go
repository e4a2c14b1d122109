package proc

import (
	"os/exec"
	"syscall"
)

// isolate has the kernel kill cmd when the thread that starts it ends, and keeps Ctrl-C from it, which is for the parent:
// it stops its children in order.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
