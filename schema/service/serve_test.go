package service_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

// slow is a server that answers requests for /slow when release is closed.
type slow struct {
	ln      net.Listener
	entered chan struct{}
	release chan struct{}
	stop    context.CancelFunc
	served  chan error
}

func startSlow(t *testing.T, grace time.Duration) *slow {
	t.Helper()
	ln, err := service.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &slow{ln: ln, entered: make(chan struct{}, 1), release: make(chan struct{}), stop: cancel,
		served: make(chan error, 1)}
	srv := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/slow" {
			s.entered <- struct{}{}
			<-s.release
		}
		ctx.SetBodyString("done")
	}}
	go func() { s.served <- service.Serve(ctx, srv, ln, grace) }()
	t.Cleanup(cancel)
	return s
}

// get returns the body of the answer to a request for path.
func (s *slow) get(path string) (string, error) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	res, err := client.Get(fmt.Sprintf("http://%s%s", s.ln.Addr(), path))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

func (s *slow) awaitServed(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.served:
		return err
	case <-time.After(testkit.Patience):
		t.Fatal("Serve does not return")
		return nil
	}
}

// stopsWithin is how soon a server stops without requests under way, or after its grace.
const stopsWithin = 5 * time.Second

func TestServe(t *testing.T) {
	t.Run("requests under way finish, and no connections are accepted", func(t *testing.T) {
		s := startSlow(t, testkit.Patience)
		answered := make(chan error, 1)
		go func() {
			body, err := s.get("/slow")
			if err == nil && body != "done" {
				err = fmt.Errorf("got %q", body)
			}
			answered <- err
		}()
		<-s.entered
		s.stop()
		for { // until the listener is closed
			conn, err := net.Dial("tcp", s.ln.Addr().String())
			if err != nil {
				break
			}
			conn.Close()
		}
		select {
		case err := <-s.served:
			t.Fatalf("Serve returned %v with a request under way", err)
		default:
		}
		close(s.release)
		if err := <-answered; err != nil {
			t.Errorf("the request under way: %v", err)
		}
		if err := s.awaitServed(t); err != nil {
			t.Errorf("Serve returned %v", err)
		}
	})
	t.Run("requests under way are cut off after the grace period", func(t *testing.T) {
		const grace = 200 * time.Millisecond
		testkit.Follows(t, stopsWithin, func(int) func() error {
			s := startSlow(t, grace)
			var answered sync.WaitGroup
			answered.Go(func() { _, _ = s.get("/slow") }) // fails, or is answered in the end
			<-s.entered
			began := time.Now()
			s.stop()
			return func() error {
				if err, took := s.awaitServed(t), time.Since(began); err != nil || took < grace {
					t.Errorf("Serve returned %v after %v", err, took)
				}
				close(s.release)
				answered.Wait()
				return nil
			}
		})
	})
	t.Run("idle connections do not delay the stop", func(t *testing.T) {
		testkit.Follows(t, stopsWithin, func(int) func() error {
			s := startSlow(t, testkit.Patience)
			conn, err := net.Dial("tcp", s.ln.Addr().String())
			testkit.Must(t, err)
			t.Cleanup(func() { conn.Close() })
			fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			_, err = http.ReadResponse(bufio.NewReader(conn), nil)
			testkit.Must(t, err)
			s.stop()
			return func() error {
				if err := s.awaitServed(t); err != nil {
					t.Errorf("Serve returned %v", err)
				}
				return nil
			}
		})
	})
	t.Run("a stop before the server has begun works", func(t *testing.T) {
		for range 50 { // start and stop race
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			ln, err := service.Listen("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := &slow{served: make(chan error, 1)}
			go func() { s.served <- service.Serve(ctx, new(fasthttp.Server), ln, time.Second) }()
			if err := s.awaitServed(t); err != nil {
				t.Fatalf("Serve returned %v", err)
			}
		}
	})
	t.Run("a closed listener is an error that names the address", func(t *testing.T) {
		s := startSlow(t, time.Second)
		if _, err := s.get("/"); err != nil {
			t.Fatal(err)
		}
		s.ln.Close()
		err := s.awaitServed(t)
		if err == nil || !strings.Contains(err.Error(), s.ln.Addr().String()) || strings.Contains(err.Error(), "%!") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a lack of descriptors or memory is survived", func(t *testing.T) {
		inner, err := service.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ln := &poorListener{Listener: inner, errs: []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
			syscall.ECONNABORTED}}
		var log testkit.Buffer
		server := &fasthttp.Server{
			Handler: func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("done") }, Logger: service.ConnLogger(log.Logger())}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &slow{ln: inner, served: make(chan error, 1)}
		go func() { s.served <- service.Serve(ctx, server, ln, time.Second) }()
		if body, err := s.get("/"); err != nil || body != "done" {
			t.Errorf("answered %q, error %v", body, err)
		}
		cancel()
		if err := s.awaitServed(t); err != nil {
			t.Errorf("Serve returned %v", err)
		}
		if len(ln.errs) > 0 || log.Count("level=WARN") != 1 || !log.Contains(syscall.EMFILE.Error()) {
			t.Errorf("%d errors left, the log is %s", len(ln.errs), log.String())
		}
	})
	t.Run("the error of the listener is returned", func(t *testing.T) {
		failure := errors.New("out of file descriptors")
		ln := brokenListener{failure}
		err := service.Serve(t.Context(), &fasthttp.Server{Logger: quiet{}}, ln, time.Second)
		if !errors.Is(err, failure) {
			t.Errorf("got %v", err)
		}
	})
}

// poorListener returns errs from Accept before it accepts connections.
type poorListener struct {
	net.Listener
	errs []error
}

func (l *poorListener) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
	}
	return l.Listener.Accept()
}

type brokenListener struct{ err error }

func (l brokenListener) Accept() (net.Conn, error) { return nil, l.err }
func (l brokenListener) Close() error              { return nil }
func (l brokenListener) Addr() net.Addr            { return &net.TCPAddr{} }

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func TestListenNamesTheAddress(t *testing.T) {
	ln, err := service.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	taken := ln.Addr().String()
	if _, err := service.Listen(taken); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("listen on %q", taken)) {
		t.Errorf("got %v", err)
	}
}

func TestCheckAddr(t *testing.T) {
	for addr, valid := range map[string]bool{
		"127.0.0.1:8080": true, ":0": true, "[::1]:65535": true, "host:80": true,
		"": false, "127.0.0.1": false, "127.0.0.1:": false, ":65536": false, ":-1": false, ":http": false, "a:b:c": false,
	} {
		if err := service.CheckAddr(addr); (err == nil) != valid {
			t.Errorf("%q: got %v", addr, err)
		}
	}
}

func TestLocalURL(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8081": "http://127.0.0.1:8081", "0.0.0.0:80": "http://127.0.0.1:80", "[::]:8081": "http://127.0.0.1:8081",
		"[::1]:8081": "http://[::1]:8081", "192.0.2.1:8081": "http://192.0.2.1:8081",
	} {
		got, err := service.LocalURL(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)))
		if err != nil || got.String() != want {
			t.Errorf("%s: %s, %v, want %s", addr, got, err, want)
		}
	}
}
