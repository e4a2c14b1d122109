//go:build !engines

package e2e_test

import (
	"bufio"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

// TestOtherUsersOfTheMachine plays another user of the machine that standalone runs on.
func TestOtherUsersOfTheMachine(t *testing.T) {
	t.Parallel()
	s := newStandalone(t)
	testkit.Must(t, os.Mkdir(s.data, 0o755))
	testkit.Must(t, os.Chmod(s.data, 0o755)) // whatever the umask
	s.start(t)
	s.owner().Alias(t, "known", "https://example.com/")
	s.click(t, "known")
	s.owner().WaitTotal(t, "known", 1)
	t.Run("have no access to its files, in a directory that existed", func(t *testing.T) { wantPrivate(t, s.data) })
	t.Run("find no other port", func(t *testing.T) {
		want := []string{address(s.edge), address(s.api), address(s.programs[0].ops)}
		slices.Sort(want)
		testkit.Equal(t, "ports", slices.Sorted(slices.Values(listening(t, s.programs[0].process.Cmd.Process.Pid))), want)
	})
	t.Run("have no access to files that were open to them", func(t *testing.T) {
		s.stop(t)
		testkit.Must(t, filepath.WalkDir(s.data, func(path string, entry fs.DirEntry, err error) error {
			if err == nil {
				mode := os.FileMode(0o644)
				if entry.IsDir() {
					mode = 0o755
				}
				err = os.Chmod(path, mode)
			}
			return err
		}))
		s.start(t)
		s.click(t, "known")
		s.owner().WaitTotal(t, "known", 2)
		wantPrivate(t, s.data)
	})
}

// wantPrivate requires that only the owner has access to a directory and to all that is in it.
func wantPrivate(t *testing.T, dir string) {
	t.Helper()
	files := 0
	testkit.Must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if os.IsNotExist(err) { // engines replace files
			return nil
		}
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		files++
		return err
	}))
	if files < 5 {
		t.Errorf("%s holds %d files and directories, want the databases and the spool", dir, files)
	}
}

// listening returns the loopback addresses on which a process listens, as Linux tells every local user.
func listening(t *testing.T, pid int) (addrs []string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/", pid)
	sockets := map[string]bool{}
	fds, err := os.ReadDir(dir + "fd")
	testkit.Must(t, err)
	for _, fd := range fds {
		if target, err := os.Readlink(dir + "fd/" + fd.Name()); err == nil {
			sockets[target] = true
		}
	}
	table, err := os.Open(dir + "net/tcp")
	testkit.Must(t, err)
	defer table.Close()
	for lines := bufio.NewScanner(table); lines.Scan(); {
		const local, state, inode, listens = 1, 3, 9, "0A"
		field := strings.Fields(lines.Text())
		if len(field) <= inode || field[state] != listens || !sockets["socket:["+field[inode]+"]"] {
			continue
		}
		_, hex, _ := strings.Cut(field[local], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		testkit.Must(t, err)
		addrs = append(addrs, net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	}
	return addrs
}
