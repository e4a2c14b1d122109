// Package proc starts processes and measures what they use.
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

// Usage is what a process has used.
type Usage struct {
	CPU time.Duration // since its start, in user and in kernel mode
	RSS int64         // bytes of memory that are resident now
}

// Self returns what this process has used.
func Self() (Usage, error) { return Read(os.Getpid()) }

// Machine describes a machine for those who read its figures, and does not name it.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

// ThisMachine describes the machine that this process runs on.
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
		release, _, _ = bytes.Cut(release, []byte("-")) // what follows says who built it
		m.Kernel = fmt.Sprintf("%s %s", runtime.GOOS, release)
	}
	return m
}
