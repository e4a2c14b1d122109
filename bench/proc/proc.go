// Package proc starts processes and measures their CPU time and memory.
package proc

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is the resource usage of a process.
type Usage struct {
	CPU time.Duration // in user and kernel mode, since the start of the process
	RSS int64         // resident memory in bytes
}

// Self returns the usage of this process.
func Self() (Usage, error) { return Read(os.Getpid()) }

// MachineUse is the CPU time of all CPUs since the machine has started.
type MachineUse struct {
	All    time.Duration // idle time included
	Others time.Duration // of processes that do not belong to the run
	Stolen time.Duration // that the hypervisor gave to other machines
}

// Machine describes a machine in a report, without its name.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

// ThisMachine describes the machine of this process.
func ThisMachine() Machine {
	m := Machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), Kernel: runtime.GOOS, Go: runtime.Version()}
	info, _ := os.ReadFile("/proc/cpuinfo") // Linux only
	for line := range strings.Lines(string(info)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		release, _, _ := bytes.Cut(uts.Release[:], []byte{0})
		release, _, _ = bytes.Cut(release, []byte("-")) // the rest names the distribution
		m.Kernel = fmt.Sprintf("%s %s", runtime.GOOS, release)
	}
	return m
}
