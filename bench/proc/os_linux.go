package proc

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// isolate makes the kernel kill cmd when the thread that starts it exits. The process group of its own keeps Ctrl-C
// away from cmd: the parent stops its children in order.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// Nap blocks the calling thread, which is more precise than the runtime's timers: a program that is idle wakes up to a
// millisecond late from these.
func Nap(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&left, nil) // a signal ends it early
}

// Read returns the usage of a process with all of its threads, without its children.
func Read(pid int) (Usage, error) {
	// The CPU-time clock of another process, see clock_getcpuclockid(3). It counts nanoseconds; /proc/PID/stat counts
	// multiples of ten milliseconds.
	const sched = 2
	var cpu unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &cpu); err != nil {
		return Usage{}, fmt.Errorf("read CPU time of process %d: %w", pid, err)
	}
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("read memory of process %d: %w", pid, err)
	}
	var total, resident int64
	if _, err := fmt.Sscan(string(statm), &total, &resident); err != nil {
		return Usage{}, fmt.Errorf("read memory of process %d: %w", pid, err)
	}
	return Usage{CPU: time.Duration(cpu.Nano()), RSS: resident * int64(os.Getpagesize())}, nil
}

// Listening returns the processes that listen on the port of a loopback address, with all of their descendants, as one.
// The CPU time of descendants that have ended counts in hundredths of a second.
func Listening(name, addr string) (Process, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return Process{}, err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return Process{}, fmt.Errorf("%s is not on this machine", addr)
	}
	roots := holders(listeners(port))
	if len(roots) == 0 {
		return Process{}, fmt.Errorf("no process that may be read listens on %s", addr)
	}
	return Process{name, func() (Usage, error) { return readTree(roots) }, roots}, nil
}

// listeners returns how the descriptors of the sockets that listen on a port are shown.
func listeners(port string) (sockets []string) {
	number, _ := strconv.Atoi(port)
	const listen = "0A" // the state, see proc_pid_net(5)
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, _ := os.ReadFile(file) // a kernel may be without IPv6
		for line := range strings.Lines(string(table)) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == listen && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", number)) {
				sockets = append(sockets, "socket:["+f[9]+"]")
			}
		}
	}
	return sockets
}

// holders returns the processes that have one of the sockets open.
func holders(sockets []string) (pids []int) {
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, path := range descriptors {
		target, err := os.Readlink(path)
		if err != nil || !slices.Contains(sockets, target) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(path, "/")[2]); err == nil && !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ReadMachine returns the use of the machine so far. This process, its descendants, and the processes outside with
// theirs are not others.
func ReadMachine(outside []int) (use MachineUse, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return use, err
	}
	own, err := readTree(append([]int{os.Getpid()}, outside...))
	if err != nil {
		return use, err
	}
	// The first line: user, nice, system, idle, iowait, irq, softirq, steal, see proc_stat(5). Interrupts are nobody's.
	line, _, _ := strings.Cut(string(stat), "\n")
	for i, field := range strings.Fields(line)[1:9] {
		ticks, _ := strconv.Atoi(field)
		time := time.Duration(ticks) * tick
		use.All += time
		switch {
		case i < 3:
			use.Others += time
		case i == 7:
			use.Stolen += time
		}
	}
	use.Others -= own.CPU
	return use, nil
}

// tick is the unit of CPU times in /proc, on all architectures that Go supports.
const tick = 10 * time.Millisecond

// readTree returns the sum over processes and their descendants.
func readTree(roots []int) (sum Usage, err error) {
	children, ended := map[int][]int{}, map[int]time.Duration{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name in parentheses may contain anything. Behind it, the parent is field 1, and fields 13 and 14 are the CPU
		// time of descendants that have ended, see proc_pid_stat(5).
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		parent, _ := strconv.Atoi(fields[1])
		user, _ := strconv.Atoi(fields[13])
		system, _ := strconv.Atoi(fields[14])
		pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
		children[parent] = append(children[parent], pid)
		ended[pid] = time.Duration(user+system) * tick
	}
	seen, found := map[int]bool{}, 0
	for pids := roots; len(pids) > 0; pids = pids[1:] {
		if pid := pids[0]; !seen[pid] {
			seen[pid] = true
			pids = append(slices.Clone(pids), children[pid]...)
			if usage, err := Read(pid); err == nil {
				sum.CPU, sum.RSS, found = sum.CPU+usage.CPU+ended[pid], sum.RSS+usage.RSS, found+1
			}
		}
	}
	if found == 0 {
		return sum, fmt.Errorf("processes %v have ended", roots)
	}
	return sum, nil
}
