package deadline_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"linkstream/edge/deadline"
	"linkstream/schema/testkit"
)

// BenchmarkListener measures an answer over TCP to a client in another process: with limits, and on plain connections of
// package net without deadlines.
func BenchmarkListener(b *testing.B) {
	limits := deadline.Limits{Read: 5e9, Write: 5e9, Idle: 75e9}
	for name, wrap := range map[string]func(net.Listener) net.Listener{
		"limits": func(inner net.Listener) net.Listener { return deadline.NewListener(inner, limits) },
		"net":    func(inner net.Listener) net.Listener { return inner },
	} {
		b.Run(name, func(b *testing.B) {
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			testkit.Must(b, err)
			server := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
				ctx.SetStatusCode(fasthttp.StatusFound)
				ctx.Response.Header.Set("Location", "https://example.com/some/page?with=query")
			}, CloseOnShutdown: true}
			served := make(chan error)
			go func() { served <- server.Serve(wrap(inner)) }()
			client := exec.Command(os.Args[0])
			client.Env = []string{fmt.Sprintf("%s=%s %d", clientEnv, inner.Addr(), b.N)}
			before := cpuTime(b)
			if out, err := client.CombinedOutput(); err != nil {
				b.Errorf("%v: %s", err, out)
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
			if err := errors.Join(server.Shutdown(), <-served); err != nil {
				b.Error(err)
			}
		})
	}
}

// cpuTime returns the CPU time of this process in nanoseconds. Other load on the machine hardly changes it.
func cpuTime(b *testing.B) int64 {
	var usage unix.Rusage
	testkit.Must(b, unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// clientEnv makes the test program the client of a benchmark. Its value is an address and a number of requests.
const clientEnv = "LINKSTREAM_TEST_CLIENT"

// runClient sends the requests over 64 connections.
func runClient(job string) error {
	var addr string
	var n int64
	if _, err := fmt.Sscan(job, &addr, &n); err != nil {
		return err
	}
	request := []byte("GET /abcdefg HTTP/1.1\r\nHost: sho.rt\r\nAccept: text/html\r\n\r\n")
	var requests atomic.Int64
	requests.Store(n)
	var group errgroup.Group
	for range 64 {
		group.Go(func() error {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				return err
			}
			defer conn.Close()
			for answer := make([]byte, 1000); requests.Add(-1) >= 0; {
				if _, err := conn.Write(request); err != nil {
					return err
				}
				if n, err := conn.Read(answer); err != nil || !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 302 ")) {
					return fmt.Errorf("answered %q: %w", answer[:n], err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}
