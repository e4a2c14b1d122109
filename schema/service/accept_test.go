package service_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

// Values of roleEnv, which make this test binary another program: see TestMain.
const (
	raiseRole  = "raise"
	deniedRole = "denied"
	askedRole  = "asked"
	roleEnv    = "LINKSTREAM_TEST_ROLE"
)

// fewFiles is the limit of open files of the other programs.
const fewFiles = 64

// allowConnections is a program that calls AllowConnections and prints its log, the new limit of open files and the
// bounds of connections.
func allowConnections(hard uint64, user int, bounds ...int) {
	check := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	check(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: fewFiles, Max: hard}))
	if user != 0 && os.Getuid() == 0 { // root may raise any limit
		check(syscall.Setuid(user))
	}
	var pointers []*int
	for i := range bounds {
		pointers = append(pointers, &bounds[i])
	}
	service.AllowConnections(slog.New(slog.NewTextHandler(os.Stdout, nil)), pointers...)
	var limit syscall.Rlimit
	check(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	fmt.Println("limit", limit.Cur, "connections", bounds)
}

func TestAllowConnections(t *testing.T) {
	self, err := os.Executable()
	testkit.Must(t, err)
	run := func(t *testing.T, role string) string {
		t.Helper()
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), roleEnv+"="+role)
		out, err := cmd.CombinedOutput()
		testkit.Must(t, err)
		return string(out)
	}
	t.Run("raises the limit of open files", func(t *testing.T) {
		testkit.Equal(t, "output", run(t, raiseRole), "limit 1256 connections [1000]\n")
	})
	t.Run("lowers a bound above the limit, without a word if it is the default", func(t *testing.T) {
		testkit.Equal(t, "output", run(t, deniedRole), "limit 128 connections [32 32]\n")
	})
	t.Run("says so if somebody has asked for it", func(t *testing.T) {
		out := run(t, askedRole)
		if !strings.Contains(out, "limit=128 need=17640 connections=64\n") ||
			!strings.HasSuffix(out, "limit 128 connections [3 60]\n") {
			t.Errorf("output %q", out)
		}
	})
}
