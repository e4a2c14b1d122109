package service_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

// Values of roleEnv, which make this test binary another program: see TestMain.
const (
	scarceRole = "scarce"
	raiseRole  = "raise"
	deniedRole = "denied"
	askedRole  = "asked"
	roleEnv    = "LINKSTREAM_TEST_ROLE"
)

// fewFiles is the limit of open files of the other programs.
const fewFiles = 64

// scarceServer is a program that may open only a few files. It serves until its input ends.
func scarceServer() {
	check := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	check(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: fewFiles, Max: fewFiles}))
	ln, err := service.Listen("127.0.0.1:0")
	check(err)
	fmt.Println(ln.Addr())
	ctx, cancel := context.WithCancel(context.Background())
	go func() { io.Copy(io.Discard, os.Stdin); cancel() }()
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	server := &fasthttp.Server{Logger: service.ConnLogger(log),
		Handler: func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("done") }}
	check(service.Serve(ctx, server, ln, time.Second))
}

func TestServeWithoutDescriptors(t *testing.T) {
	self, err := os.Executable()
	testkit.Must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleEnv+"="+scarceRole)
	input, err := cmd.StdinPipe()
	testkit.Must(t, err)
	output := new(testkit.Buffer)
	cmd.Stdout, cmd.Stderr = output, output
	testkit.Must(t, cmd.Start())
	defer cmd.Process.Kill()
	var addr string
	testkit.Eventually(t, "the server listens", func() bool {
		line, _, whole := strings.Cut(output.String(), "\n")
		addr = line
		return whole
	})
	var idle []net.Conn
	for range 2 * fewFiles {
		conn, err := net.Dial("tcp", addr)
		testkit.Must(t, err)
		defer conn.Close()
		idle = append(idle, conn)
	}
	testkit.Eventually(t, "the log says that it is out of files", func() bool {
		return strings.Contains(output.String(), "too many open files")
	})
	for _, conn := range idle {
		conn.Close()
	}
	resolved, err := net.ResolveTCPAddr("tcp", addr)
	testkit.Must(t, err)
	if status, _, body, err := ask(resolved, "/"); err != nil || status != 200 || body != "done" {
		t.Errorf("after the flood: status %d, body %q, error %v", status, body, err)
	}
	input.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v:\n%s", err, output)
	}
}

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
