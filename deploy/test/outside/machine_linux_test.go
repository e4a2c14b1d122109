//go:build deploy

package outside_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

// A copy of this machine is for tests that install and run programs that would change it: the same files, below another
// root and in memory, with more packages if a test asks for them. Processes of a copy end with it.

// machine is a copy of this machine.
type machine struct {
	init   *exec.Cmd // its first process, whose end ends all others
	log    testkit.Buffer
	spaces []string // the namespaces of its own, as nsenter calls them
}

// layFiles makes the files of the copy in the folder $1, with those of the folder $2 added. What follows are pairs of
// folders: here, and in the copy.
const layFiles = `
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
root=$1/root
if [ -n "$2" ]; then
	cp -a "$2/." "$root/" # the kernel refuses a folder of / as a layer over /
fi
shift 2
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/run"
while [ $# -gt 0 ]; do
	mkdir -p "$root$2"
	mount --bind "$1" "$root$2"
	shift 2
done
`

// runPlainly runs the copy with this machine's devices and network, and without systemd.
const runPlainly = layFiles + `
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
exec chroot "$root" sh -c 'echo ready; exec cat'
`

// startMachine starts a copy with these packages of Debian, which ends with the test. folders maps absolute paths in
// the copy to folders of this machine, which the copy can change. The test must run as root.
func startMachine(t *testing.T, packages []string, folders map[string]string) *machine {
	t.Helper()
	m := newMachine(t, runPlainly, packages, folders)
	m.spaces = []string{"--mount", "--pid", "--root", "--wd"}
	m.init.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	stdin, err := m.init.StdinPipe() // cat ends when it is closed, also by the death of this process
	testkit.Must(t, err)
	stdout, err := m.init.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, m.init.Start())
	t.Cleanup(func() {
		stdin.Close()
		_, _ = io.Copy(io.Discard, stdout)
		_ = m.init.Wait()
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		_ = m.init.Wait()
		t.Fatalf("copy this machine: %q, %v: %s", line, err, m.log.String())
	}
	return m
}

// newMachine returns a copy whose first process, which is not started yet, runs a script that begins with layFiles.
func newMachine(t *testing.T, script string, packages []string, folders map[string]string) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("copies of this machine need root")
	}
	added := ""
	if len(packages) > 0 {
		var err error
		added, err = testengines.DebianPackages(t.Context(), slog.New(slog.NewTextHandler(t.Output(), nil)), packages...)
		testkit.Must(t, err)
	}
	args := []string{"-ec", script, "setup", t.TempDir(), added}
	for _, inside := range slices.Sorted(maps.Keys(folders)) { // a folder before those in it
		args = append(args, folders[inside], inside)
	}
	m := &machine{init: exec.Command("sh", args...)}
	m.init.Stderr = &m.log
	return m
}

// Run runs a shell script in the copy, as root, and returns what it prints. It must succeed.
func (m *machine) Run(t *testing.T, script string, args ...string) string {
	t.Helper()
	out, err := m.Try(t, script, args...)
	if err != nil {
		t.Fatalf("%s\n%v\n%s", strings.TrimSpace(script), err, out)
	}
	return out
}

// Try is Run for a script that may fail. out has both outputs.
func (m *machine) Try(t *testing.T, script string, args ...string) (out string, err error) {
	t.Helper()
	cmd := m.Command(t, append([]string{"sh", "-ec", script, "script"}, args...)...)
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err = cmd.Run()
	return both.String(), err
}

// Command returns a command that runs in the copy, with nothing of this process's environment.
func (m *machine) Command(t *testing.T, command ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "nsenter",
		slices.Concat([]string{"--target", strconv.Itoa(m.init.Process.Pid)},
			m.spaces, []string{"--"}, command)...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"}
	return cmd
}

// Path returns the path by which this machine's processes reach a file of the copy.
func (m *machine) Path(inside string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", m.init.Process.Pid), inside)
}
