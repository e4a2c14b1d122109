package testengines

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill cmd when the thread that starts it ends.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// dropRoot makes cmd run as another user if this process is root, and makes that user the owner of the folder owned.
//
// The program may be in a folder that only root can enter, such as root's cache, so cmd keeps the capability
// dac_override. It needs it to start, and for access(2), by which Postgres looks for its programs. When a process
// gives up root, the kernel takes both away, unless the secure bit no_setuid_fixup is set. See capabilities(7).
func dropRoot(cmd *exec.Cmd, owned string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		return fmt.Errorf("run %q as another user than root: %w", cmd.Path, err)
	}
	u, err := osuser.Lookup("postgres")
	if err != nil {
		u, err = osuser.Lookup("nobody")
	}
	if err != nil {
		return fmt.Errorf("find user to run %q as: %w", cmd.Path, err)
	}
	args := []string{"setpriv", "--reuid", u.Uid, "--regid", u.Gid, "--clear-groups", "--securebits", "+no_setuid_fixup",
		"--inh-caps", "-all,+dac_override", "--ambient-caps", "-all,+dac_override", "--pdeathsig", "keep", "--", cmd.Path}
	cmd.Path, cmd.Args = setpriv, append(args, cmd.Args[1:]...)

	uid, _ := strconv.Atoi(u.Uid) // numbers, on this system
	gid, _ := strconv.Atoi(u.Gid)
	return filepath.WalkDir(owned, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
}

// killMarked kills all processes whose command line contains mark and returns when they have ended.
func killMarked(ctx context.Context, mark string) error {
	if mark == "" {
		return nil
	}
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		// Command lines, unlike working directories, can be read without privileges, whoever owns the process.
		paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return err
		}
		found := false
		for _, path := range paths {
			line, _ := os.ReadFile(path) // fails if the process has ended
			if !bytes.Contains(line, []byte(mark)) {
				continue
			}
			found = true
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if !found {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for the end of processes marked %q: %w", mark, ctx.Err())
		}
	}
}

// hasRoom reports whether both the file system of dir and the memory have that many bytes free. It is false where
// programs may not be executed: chserver is beside its data.
func hasRoom(dir string, bytes uint64) bool {
	var stat unix.Statfs_t
	if unix.Statfs(dir, &stat) != nil || stat.Flags&unix.MS_NOEXEC != 0 || stat.Bavail*uint64(stat.Bsize) < bytes {
		return false
	}
	memory, _ := os.ReadFile("/proc/meminfo") // has what is needed in this form since Linux 3.14
	_, available, _ := strings.Cut(string(memory), "MemAvailable:")
	var kibibytes uint64
	_, err := fmt.Sscan(available, &kibibytes)
	return err == nil && kibibytes >= bytes>>10
}

// syncFilesystem writes the unwritten data of dir's file system to disk.
func syncFilesystem(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
