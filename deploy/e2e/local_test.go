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
	"time"

	"github.com/segmentio/kafka-go"

	"linkstream/schema/testkit"
)

// TestOtherUsersOfTheMachine plays another user of the machine that standalone runs on.
func TestOtherUsersOfTheMachine(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	testkit.Must(t, os.Mkdir(s.data, 0o755))
	testkit.Must(t, os.Chmod(s.data, 0o755)) // whatever the umask
	s.start(t)
	s.owner().alias(t, "known", "https://example.com/")
	s.click(t, "known")
	s.owner().waitTotal(t, "known", 1)
	t.Run("have no access to its files, in a directory that existed", func(t *testing.T) { wantPrivate(t, s.data) })
	t.Run("can neither write nor delete the click log", func(t *testing.T) {
		attacked := false
		for _, addr := range listening(t, s.programs[0].process.cmd.Process.Pid) {
			if !slices.Contains([]string{address(s.edge), address(s.api), address(s.programs[0].ops)}, addr) {
				attacked = true
				attackBroker(t, addr)
			}
		}
		if !attacked {
			t.Fatal("the broker was not found")
		}
		s.click(t, "known")
		s.owner().waitTotal(t, "known", 2)
	})
	t.Run("have no access to files that an earlier version left open", func(t *testing.T) {
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
		s.owner().waitTotal(t, "known", 3)
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
		t.Errorf("%s holds %d files and directories, want the databases, the spool and the broker's", dir, files)
	}
}

// attackBroker requires that whoever has no password can neither read, nor write, nor delete anything of a broker.
func attackBroker(t *testing.T, addr string) {
	t.Helper()
	for _, attack := range []struct {
		name string
		run  func(*kafka.Conn) error
	}{
		{"list topics", func(c *kafka.Conn) error { _, err := c.ReadPartitions(); return err }},
		{"forge a click", func(c *kafka.Conn) error { _, err := c.WriteMessages(kafka.Message{Value: []byte("x")}); return err }},
		{"delete the topic", func(c *kafka.Conn) error { return c.DeleteTopics("clicks") }},
	} {
		tcp, err := net.Dial("tcp", addr)
		testkit.Must(t, err)
		conn := kafka.NewConn(tcp, "clicks", 0)
		testkit.Must(t, conn.SetDeadline(time.Now().Add(5*time.Second)))
		if err := attack.run(conn); err == nil {
			t.Errorf("%s lets everyone %s", addr, attack.name)
		}
		conn.Close()
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
