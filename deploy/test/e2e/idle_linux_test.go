//go:build !engines

package e2e_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// TestIdleStandalone counts how often the threads of a standalone wake up while nobody uses it. Unlike CPU time, the
// number does not depend on how busy the machine is. A timer of 20 ms in one place alone adds a hundred.
func TestIdleStandalone(t *testing.T) {
	t.Parallel()
	const most, during = 120, 5 * time.Second // per second
	s := startStandalone(t)
	s.owner().Alias(t, "visited", "https://example.com/")
	s.click(t, "visited")
	s.programs[0].awaitMetric(t, counterCounted, func(n float64) bool { return n == 1 })
	http.DefaultClient.CloseIdleConnections()
	pid := s.programs[0].process.Cmd.Process.Pid
	before := wakeUps(t, pid)
	time.Sleep(during) // nothing has to happen meanwhile
	if n := float64(wakeUps(t, pid)-before) / during.Seconds(); n > most {
		t.Errorf("%.0f wake-ups per second, more than %d", n, most)
	} else {
		t.Logf("%.0f wake-ups per second", n)
	}
}

// wakeUps returns how often the threads of a process have given up their CPU to wait. Threads that end meanwhile are
// left out.
func wakeUps(t *testing.T, pid int) (sum int) {
	t.Helper()
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	testkit.Must(t, err)
	found := false
	for _, path := range paths {
		status, err := os.Open(path)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(status); lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "voluntary_ctxt_switches:"); ok {
				n, err := strconv.Atoi(strings.TrimSpace(text))
				testkit.Must(t, err)
				sum, found = sum+n, true
			}
		}
		status.Close()
	}
	if !found {
		t.Fatal("there are no threads")
	}
	return sum
}
