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

// fewFiles is the limit of open files of the server that scarceServer runs, in a process of its own.
const (
	fewFiles   = 64
	scarceRole = "LINKSTREAM_TEST_SCARCE_FILES"
)

// scarceServer serves until its input ends, as a program that may open only a few files.
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
	server := &fasthttp.Server{Logger: service.ConnLogger(log), Handler: func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("done") }}
	check(service.Serve(ctx, server, ln, time.Second))
}

func TestServeWithoutDescriptors(t *testing.T) {
	self, err := os.Executable()
	testkit.Must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), scarceRole+"=1")
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
