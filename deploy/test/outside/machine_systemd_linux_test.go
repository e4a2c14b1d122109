//go:build deploy

package outside_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"linkstream/schema/testkit"
)

// runSystemd runs a copy whose first process is systemd: with a network, devices and control groups of its own, and
// with no unit enabled but those of a minimal Debian. LoadCredential= needs mounts that are shared.
const runSystemd = `
group=$1 && shift
echo 0 >"$group/cgroup.procs"
exec unshare --cgroup sh -ec "$0" setup "$@"
`

const bootSystemd = layFiles + `
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm"
for device in null zero full random urandom tty; do
	touch "$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs tmpfs "$root/dev/shm"
ip link set lo up
rm -rf "$root"/etc/systemd/system/* "$root"/etc/rc?.d "$root"/var/log/journal
ln -sf true "$root/usr/bin/mandb" # an index of all of the machine's manual pages
for unit in getty.target systemd-logind.service systemd-udevd.service systemd-udevd-kernel.socket \
	systemd-udevd-control.socket systemd-udev-trigger.service; do
	ln -s /dev/null "$root/etc/systemd/system/$unit"
done
cd "$root"
pivot_root . mnt
umount --lazy /mnt
mount --make-rshared /
exec env -i container=lxc PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	LANG=C.UTF-8 /lib/systemd/systemd
`

// bootMachine is startMachine with a real systemd, which runs when it returns. Nothing but relays leads into the
// network of the copy, or out of it.
func bootMachine(t *testing.T, packages []string, folders map[string]string) *machine {
	t.Helper()
	m := newMachine(t, bootSystemd, append([]string{"systemd", "systemd-sysv", "dbus"}, packages...), folders)
	group := controlGroup(t)
	m.init.Args = append([]string{"sh", "-ec", runSystemd, m.init.Args[2], group}, m.init.Args[4:]...)
	m.spaces = []string{"--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup"}
	m.init.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS |
			syscall.CLONE_NEWIPC | syscall.CLONE_NEWNET}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // systemd is killed when the thread that has started it ends
		defer runtime.UnlockOSThread()
		started <- m.init.Start()
		<-ended
	}()
	t.Cleanup(func() {
		defer close(ended)
		if m.init.Process != nil {
			_ = m.init.Process.Kill()
			_ = m.init.Wait()
		}
	})
	testkit.Must(t, <-started)
	testkit.SucceedsWithin(t, 2*testkit.Patience, func() error {
		out, err := m.Try(t, `systemctl is-system-running --wait || { systemctl --failed --no-pager; false; }`)
		if err != nil {
			err = errors.Join(err, errors.New(out+m.log.String()))
		}
		return err
	})
	return m
}

// controlGroup makes a control group for the processes of a copy, and removes it when they have ended.
func controlGroup(t *testing.T) (dir string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	testkit.Must(t, err)
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); fields[2] == "cgroup2" {
			dir, err = os.MkdirTemp(fields[1], "linkstream-test-")
			testkit.Must(t, err)
			t.Cleanup(func() {
				testkit.Succeeds(t, func() error {
					var groups []string
					err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
						if err == nil && entry.IsDir() {
							groups = append([]string{path}, groups...)
						}
						return err
					})
					for _, group := range groups {
						err = errors.Join(err, syscall.Rmdir(group))
					}
					return err
				})
			})
			return dir
		}
	}
	t.Fatal("this machine has no control groups of version 2")
	return ""
}

// InNetwork calls f with the network of the copy: sockets that f opens stay in it.
func (m *machine) InNetwork(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		space, err := os.Open(m.Path("/proc/1/ns/net"))
		if err == nil {
			defer space.Close()
			err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = f()
		}
		result <- err
	}()
	return <-result
}

// Dial connects to an IP address and port in the copy.
func (m *machine) Dial(addr string) (conn net.Conn, err error) {
	err = m.InNetwork(func() (err error) {
		conn, err = net.DialTimeout("tcp", addr, testkit.Patience)
		return err
	})
	return conn, err
}

// RelayIn lets the copy reach the address there, of this machine, at the address inside.
func (m *machine) RelayIn(t *testing.T, inside, there string) {
	t.Helper()
	testkit.Must(t, m.InNetwork(func() error {
		ln, err := net.Listen("tcp", inside)
		if err == nil {
			relay(t, ln, func() (net.Conn, error) { return net.Dial("tcp", there) })
		}
		return err
	}))
}

// RelayOut lets this machine reach the address inside, of the copy, at the port that it returns.
func (m *machine) RelayOut(t *testing.T, inside string) (port int) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	relay(t, ln, func() (net.Conn, error) { return m.Dial(inside) })
	return ln.Addr().(*net.TCPAddr).Port
}
