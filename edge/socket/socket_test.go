package socket_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linkstream/edge/socket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect returns both ends of a TCP connection, the server's as a socket.
func connect(t *testing.T) (server, client net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if client, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server = socket.New(accepted)
	t.Cleanup(func() { server.Close(); client.Close() })
	for _, c := range []net.Conn{server, client} {
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	return server, client
}

// converse has so many requests of a few bytes answered with themselves.
func converse(t *testing.T, server, client net.Conn, requests int) {
	t.Helper()
	sent, got := []byte("request"), make([]byte, 100)
	for range requests {
		if _, err := client.Write(sent); err != nil {
			t.Fatal(err)
		}
		n, err := server.Read(got)
		if err != nil || !bytes.Equal(got[:n], sent) {
			t.Fatalf("read %q, %v", got[:n], err)
		}
		if n, err = server.Write(got[:n]); err != nil || n != len(sent) {
			t.Fatalf("wrote %d bytes, %v", n, err)
		}
		if _, err := io.ReadFull(client, got[:n]); err != nil || !bytes.Equal(got[:n], sent) {
			t.Fatalf("answered %q, %v", got[:n], err)
		}
	}
}

func TestConnectionPassesEveryByteOn(t *testing.T) {
	const seed = 7
	stream := make([]byte, 4<<20)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range stream {
		stream[i] = byte(random.Uint32())
	}
	for name, largest := range map[string]int{"a few bytes": 8, "as much as a buffer or less": 5000, "a lot": 200_000} {
		t.Run("read in pieces of "+name, func(t *testing.T) {
			server, client := connect(t)
			want := stream[:min(len(stream), 20_000*largest)]
			var sending sync.WaitGroup
			sending.Go(func() {
				random := rand.New(rand.NewPCG(seed, 1))
				for rest := want; len(rest) > 0; {
					n := min(len(rest), 1+random.IntN(largest))
					if _, err := client.Write(rest[:n]); err != nil {
						t.Error(err)
						return
					}
					rest = rest[n:]
				}
			})
			sending.Go(func() { io.Copy(io.Discard, client) })
			random := rand.New(rand.NewPCG(seed, 2))
			var got []byte
			for len(got) < len(want) {
				p := make([]byte, 1+random.IntN(largest))
				n, err := server.Read(p)
				if err != nil {
					t.Fatalf("after %d bytes: %v", len(got), err)
				}
				got = append(got, p[:n]...)
				if random.IntN(4) > 0 { // else there are more reads to a request
					server.Write([]byte("."))
				}
			}
			server.Close()
			sending.Wait()
			if !bytes.Equal(got, want) {
				t.Errorf("read %d bytes, which are not the %d that were sent", len(got), len(want))
			}
		})
	}
	t.Run("written to a client that is slow to take it", func(t *testing.T) {
		server, client := connect(t)
		var writing sync.WaitGroup
		writing.Go(func() {
			if n, err := server.Write(stream); n != len(stream) || err != nil {
				t.Errorf("wrote %d of %d bytes, %v", n, len(stream), err)
			}
			server.Close()
		})
		got, err := io.ReadAll(client)
		writing.Wait()
		if err != nil || !bytes.Equal(got, stream) {
			t.Errorf("the client got %d bytes, %v, which are not the %d that were written", len(got), err, len(stream))
		}
	})
}

// A connection is read in another way after a few requests.
const few, many = 1, 20

func TestConnectionEnds(t *testing.T) {
	for _, requests := range []int{0, few, many} {
		for name, test := range map[string]func(t *testing.T, server, client net.Conn){
			"when the client closes it": func(t *testing.T, server, client net.Conn) {
				client.Close()
				if _, err := server.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("read: %v, want the end", err)
				}
			},
			"when the client resets it": func(t *testing.T, server, client net.Conn) {
				client.(*net.TCPConn).SetLinger(0)
				client.Close()
				if _, err := server.Read(make([]byte, 1)); err == nil || err == io.EOF {
					t.Errorf("read: %v, want an error", err)
				}
			},
			"when the client has said its last word": func(t *testing.T, server, client net.Conn) {
				client.Write([]byte("last"))
				client.(*net.TCPConn).CloseWrite()
				got, err := io.ReadAll(server)
				if err != nil || string(got) != "last" {
					t.Errorf("read %q, %v", got, err)
				}
				if _, err := server.Write([]byte("bye")); err != nil {
					t.Error(err)
				}
			},
			"when the client has said its last word with a request, once a deadline passes": func(
				t *testing.T, server, client net.Conn,
			) {
				client.Write([]byte("last"))
				client.(*net.TCPConn).CloseWrite()
				got := make([]byte, 100)
				if n, err := server.Read(got); err != nil || string(got[:n]) != "last" {
					t.Errorf("read %q, %v", got[:n], err)
				}
				if _, err := server.Write([]byte("bye")); err != nil {
					t.Error(err)
				}
				server.SetReadDeadline(time.Now())
				_, err := server.Read(got)
				if errors.Is(err, os.ErrDeadlineExceeded) {
					server.SetReadDeadline(time.Time{})
					_, err = server.Read(got)
				}
				if err != io.EOF {
					t.Errorf("read: %v, want the end", err)
				}
			},
			"when it is closed": func(t *testing.T, server, client net.Conn) {
				if err := server.Close(); err != nil {
					t.Error(err)
				}
				if _, err := server.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
					t.Errorf("read: %v, want that it is closed", err)
				}
				if _, err := server.Write(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
					t.Errorf("write: %v, want that it is closed", err)
				}
				if _, err := client.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("the client read: %v, want the end", err)
				}
			},
		} {
			t.Run(name, func(t *testing.T) {
				server, client := connect(t)
				converse(t, server, client, requests)
				test(t, server, client)
			})
		}
	}
}

func TestConnectionHasDeadlines(t *testing.T) {
	const soon = 100 * time.Millisecond
	const larger = 32 << 20 // than the kernel's buffers
	much := make([]byte, larger)
	for _, requests := range []int{0, few, many} {
		server, client := connect(t)
		converse(t, server, client, requests)
		server.SetDeadline(time.Now().Add(soon))
		if n, err := server.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || n > 0 {
			t.Errorf("after %d requests: read %d bytes, %v, want a deadline's error", requests, n, err)
		}
		if _, err := server.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after %d requests: read again: %v, want the same error", requests, err)
		}
		server.SetDeadline(time.Time{})
		converse(t, server, client, few) // as if nothing had been

		server.SetDeadline(time.Now().Add(soon))
		if n, err := server.Write(much); !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 || n == larger {
			t.Errorf("after %d requests: wrote %d bytes, %v, want some and a deadline's error", requests, n, err)
		}
	}
}

// A server that stops closes connections whatever they do just then.
func TestConnectionIsClosedDuringItsUse(t *testing.T) {
	for i := range 300 {
		server, client := connect(t)
		var use sync.WaitGroup
		use.Go(func() {
			for p := make([]byte, 100); ; {
				n, err := server.Read(p)
				if err == nil {
					_, err = server.Write(p[:n])
				}
				if err != nil {
					server.Close()
					return
				}
			}
		})
		use.Go(func() {
			for p := make([]byte, 100); ; {
				if _, err := client.Write(p[:10]); err != nil {
					return
				}
				if _, err := client.Read(p); err != nil {
					return
				}
			}
		})
		<-time.After(time.Duration(i) * 3 * time.Microsecond)
		server.Close()
		use.Wait()
	}
}
