package deadline_test

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/edge/deadline"
	"linkstream/schema/testkit"
)

// pipes is a listener whose connections are pipes, in which a write waits for the reader.
type pipes struct {
	net.Listener
	client net.Conn
}

func (p *pipes) Accept() (conn net.Conn, err error) {
	conn, p.client = net.Pipe()
	return conn, nil
}

// limits are so far apart that a test can tell which of them ended an operation.
var limits = deadline.Limits{Read: 4 * time.Second, Write: 8 * time.Second, Idle: 80 * time.Second}

// accept returns both ends of a connection with limits.
func accept(t *testing.T) (server, client net.Conn) {
	inner := &pipes{}
	server, err := deadline.NewListener(inner, limits).Accept()
	testkit.Must(t, err)
	t.Cleanup(func() { server.Close(); inner.client.Close() })
	return server, inner.client
}

// timesOut requires that the operation fails by a deadline, after at least least and at most most.
func timesOut(t *testing.T, what string, least, most time.Duration, operation func() error) {
	t.Helper()
	start := time.Now()
	if err := operation(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: error %v, want that of a deadline", what, err)
	}
	if took := time.Since(start); took < least || took > most {
		t.Errorf("%s took %v, want %v to %v", what, took, least, most)
	}
}

func TestListener(t *testing.T) {
	read := func(c net.Conn) func() error {
		return func() error { _, err := io.ReadFull(c, make([]byte, 100)); return err }
	}
	write := func(c net.Conn) func() error {
		return func() error { _, err := c.Write(make([]byte, 100)); return err }
	}
	// exchange sends a request of one byte and an answer of one byte.
	exchange := func(t *testing.T, server, client net.Conn) {
		t.Helper()
		b := make([]byte, 1)
		go client.Write(b)
		if _, err := server.Read(b); err != nil {
			t.Fatal(err)
		}
		go io.ReadFull(client, make([]byte, 1))
		if _, err := server.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]func(t *testing.T, server, client net.Conn){
		"the first request does not arrive": func(t *testing.T, server, client net.Conn) {
			timesOut(t, "read", 4*time.Second, 4*time.Second, read(server))
		},
		"a request arrives byte by byte": func(t *testing.T, server, client net.Conn) {
			exchange(t, server, client)
			time.Sleep(time.Minute)
			var dribble sync.WaitGroup
			dribble.Go(func() {
				for range 100 {
					if _, err := client.Write([]byte("x")); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			})
			timesOut(t, "read", 4*time.Second, 4*time.Second, read(server))
			server.Close()
			dribble.Wait()
		},
		"the first answer is not taken": func(t *testing.T, server, client net.Conn) {
			exchange(t, server, client)
			timesOut(t, "write", 8*time.Second, 9*time.Second, write(server))
		},
		"an answer is not taken after an idle time": func(t *testing.T, server, client net.Conn) {
			exchange(t, server, client)
			time.Sleep(time.Minute) // deadlines have passed; they must not count
			exchange(t, server, client)
			time.Sleep(900 * time.Millisecond)
			timesOut(t, "write", 8*time.Second, 9*time.Second, write(server))
		},
		"no further request arrives": func(t *testing.T, server, client net.Conn) {
			for range 30 {
				exchange(t, server, client)
				time.Sleep(39 * time.Second)
			}
			exchange(t, server, client)
			timesOut(t, "read", 80*time.Second, 90*time.Second, read(server))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, client := accept(t)
				test(t, server, client)
			})
		})
	}
	t.Run("a connection in use is never closed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server, client := accept(t)
			for range 1000 {
				exchange(t, server, client)
				time.Sleep(70 * time.Second)
			}
		})
	})
	t.Run("the end of the connection is io.EOF", func(t *testing.T) {
		server, client := accept(t)
		client.Close()
		if _, err := server.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("read: %v, want io.EOF", err)
		}
	})
}

// Package socket tests what TCP connections do. This test covers that they have limits.
func TestTCPConnection(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer inner.Close()
	client, err := net.Dial("tcp", inner.Addr().String())
	testkit.Must(t, err)
	defer client.Close()
	const limit = 400 * time.Millisecond
	server, err := deadline.NewListener(inner, deadline.Limits{Read: limit, Write: limit, Idle: limit}).Accept()
	testkit.Must(t, err)
	defer server.Close()
	sent, got := make([]byte, 10), make([]byte, 100)
	exchange := func() {
		for _, operation := range []func() (int, error){
			func() (int, error) { return client.Write(sent) }, func() (int, error) { return server.Read(got) },
			func() (int, error) { return server.Write(sent) }, func() (int, error) { return client.Read(got) },
		} {
			if n, err := operation(); n != len(sent) || err != nil {
				t.Fatalf("%d bytes, %v", n, err)
			}
		}
	}
	for range 20 {
		exchange()
	}
	timesOut(t, "read", limit, time.Minute, func() error { _, err := server.Read(got); return err })
	exchange() // a limit ends the Read, not the connection: that is for the server to close
	// The FIN arrives together with the last request, so that no event announces it: a deadline finds it.
	client.Write(sent)
	client.(*net.TCPConn).CloseWrite()
	for _, want := range []error{nil, io.EOF} {
		if _, err := server.Read(got); err != want {
			t.Errorf("read: %v, want %v", err, want)
		}
		server.Write(sent)
	}
}
