package redirect_test

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/edge/redirect"
)

// pipes is a listener whose connections are pipes, in which a write waits for its reader.
type pipes struct {
	net.Listener
	client net.Conn
}

func (p *pipes) Accept() (conn net.Conn, err error) {
	conn, p.client = net.Pipe()
	return conn, nil
}

// accept returns both ends of a connection, of which a request may take 4 s, an answer 8 s, and the time between them
// 80 s.
func accept(t *testing.T) (server, client net.Conn) {
	inner := &pipes{}
	server, err := redirect.NewListener(inner, redirect.Config{
		ReadTimeout: 4 * time.Second, WriteTimeout: 8 * time.Second, IdleTimeout: 80 * time.Second}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close(); inner.client.Close() })
	return server, inner.client
}

// lasts fails unless the operation ends for want of time, after least at the soonest and most at the latest.
func lasts(t *testing.T, what string, least, most time.Duration, operation func() error) {
	t.Helper()
	start := time.Now()
	if err := operation(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: error %v, want a deadline's", what, err)
	}
	if took := time.Since(start); took < least || took > most {
		t.Errorf("%s took %v, want %v to %v", what, took, least, most)
	}
}

func TestListenerBoundsTime(t *testing.T) {
	read := func(c net.Conn) func() error {
		return func() error { _, err := io.ReadFull(c, make([]byte, 100)); return err }
	}
	write := func(c net.Conn) func() error {
		return func() error { _, err := c.Write(make([]byte, 100)); return err }
	}
	// exchange has a request of one byte answered with one byte.
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
		"of a first request that does not come": func(t *testing.T, server, client net.Conn) {
			lasts(t, "read", 4*time.Second, 4*time.Second, read(server))
		},
		"of a request of which a byte comes now and then": func(t *testing.T, server, client net.Conn) {
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
			lasts(t, "read", 4*time.Second, 4*time.Second, read(server))
			server.Close()
			dribble.Wait()
		},
		"of an answer that is not taken": func(t *testing.T, server, client net.Conn) {
			exchange(t, server, client)
			lasts(t, "write", 8*time.Second, 9*time.Second, write(server))
		},
		"of an answer that is not taken after a while": func(t *testing.T, server, client net.Conn) {
			exchange(t, server, client)
			time.Sleep(time.Minute) // deadlines have passed meanwhile, and mean nothing
			exchange(t, server, client)
			time.Sleep(900 * time.Millisecond)
			lasts(t, "write", 8*time.Second, 9*time.Second, write(server))
		},
		"between requests": func(t *testing.T, server, client net.Conn) {
			for range 30 {
				exchange(t, server, client)
				time.Sleep(39 * time.Second)
			}
			exchange(t, server, client)
			lasts(t, "read", 80*time.Second, 90*time.Second, read(server))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, client := accept(t)
				test(t, server, client)
			})
		})
	}
	t.Run("and lets a connection be used for as long as it is", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server, client := accept(t)
			for range 1000 {
				exchange(t, server, client)
				time.Sleep(70 * time.Second)
			}
		})
	})
	t.Run("and passes the end of the connection on", func(t *testing.T) {
		server, client := accept(t)
		client.Close()
		if _, err := server.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("read: %v, want the end", err)
		}
	})
}

// What a kernel's connection does is for package socket to test; here, that one has the limits.
func TestListenerBoundsTimeOfKernelConnections(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	client, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const limit = 400 * time.Millisecond
	server, err := redirect.NewListener(inner, redirect.Config{ReadTimeout: limit, WriteTimeout: limit, IdleTimeout: limit}).Accept()
	if err != nil {
		t.Fatal(err)
	}
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
	lasts(t, "read", limit, time.Minute, func() error { _, err := server.Read(got); return err })
	exchange() // the limit ends the read, and whoever reads ends the connection
	// A client that has said its last word with a request: nothing announces the end, which a deadline has found.
	client.Write(sent)
	client.(*net.TCPConn).CloseWrite()
	for _, want := range []error{nil, io.EOF} {
		if _, err := server.Read(got); err != want {
			t.Errorf("read: %v, want %v", err, want)
		}
		server.Write(sent)
	}
}
