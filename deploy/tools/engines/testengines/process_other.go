//go:build !linux

package testengines

import (
	"context"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent only allocates the attributes: the parent-death signal exists on Linux only.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{} }

// dropRoot does nothing. Run the tests as another user than root.
func dropRoot(*exec.Cmd, string) error { return nil }

// killMarked does nothing: without /proc there is no portable way to find the processes.
func killMarked(context.Context, string) error { return nil }

// hasRoom is false: other systems have no file system in memory that every user can write to.
func hasRoom(string, uint64) bool { return false }

func syncFilesystem(string) error {
	unix.Sync()
	return nil
}
