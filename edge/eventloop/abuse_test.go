package eventloop_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// short is the patience of servers in tests that wait until it ends. A client of a test has to be quicker, also
// where it waits for a CPU between two steps.
const short = 700 * time.Millisecond

// While clients misbehave, others are answered; when they are gone, no connection is left.
func TestServerSurvives(t *testing.T) {
	t.Parallel()
	for _, abuse := range []struct {
		name string
		run  func(t *testing.T, s *site)
		slow bool // the clients are not to be cut off
	}{
		{"clients that dribble their header", func(t *testing.T, s *site) {
			together(20, func(int) {
				conn := s.dial(t)
				for _, b := range []byte("GET /link HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 5000)) {
					if _, err := conn.Write([]byte{b}); err != nil {
						break
					}
					time.Sleep(short / 20)
				}
				wantEnd(t, conn, "408")
			})
		}, false},
		{"clients that send nothing", func(t *testing.T, s *site) {
			together(20, func(int) { wantEnd(t, s.dial(t), "408") })
		}, false},
		{"clients that stop in the middle of a header", func(t *testing.T, s *site) {
			together(20, func(int) {
				conn := s.dial(t)
				fmt.Fprint(conn, "GET /link HTTP/1.1\r\nHo")
				wantEnd(t, conn, "408")
			})
		}, false},
		{"clients whose body does not come", func(t *testing.T, s *site) {
			together(20, func(int) {
				conn := s.dial(t)
				fmt.Fprint(conn, "POST /store HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab")
				wantEnd(t, conn, "408")
			})
		}, false},
		{"clients that idle", func(t *testing.T, s *site) {
			together(50, func(int) {
				conn := s.dial(t)
				ask(t, conn, get("/link"))
				wantEnd(t, conn, "")
			})
		}, false},
		{"clients that have said their last word", func(t *testing.T, s *site) {
			together(50, func(i int) {
				conn := s.dial(t)
				fmt.Fprint(conn, get([]string{"/link", "/store", "/large"}[i%3]))
				conn.CloseWrite()
				wantEnd(t, conn, []string{"302", "200", "200"}[i%3])
			})
		}, true},
		{"clients that go without waiting for their answer", func(t *testing.T, s *site) {
			together(50, func(i int) {
				conn := s.dial(t)
				fmt.Fprint(conn, strings.Repeat(get([]string{"/link", "/store", "/large"}[i%3]), 5))
				if i%2 == 0 {
					conn.SetLinger(0)
				}
				conn.Close()
			})
		}, false},
		{"clients that reset the connection in the middle of an answer", func(t *testing.T, s *site) {
			together(50, func(int) {
				conn := s.dial(t)
				fmt.Fprint(conn, get("/large")+get("/link"))
				io.ReadFull(conn, make([]byte, 1000))
				conn.SetLinger(0)
				conn.Close()
			})
		}, false},
		{"clients that connect and go", func(t *testing.T, s *site) {
			together(10, func(i int) {
				for range 100 {
					conn := s.dial(t)
					if i%2 == 0 {
						conn.SetLinger(0)
					}
					conn.Close()
				}
			})
		}, false},
		{"clients that do not take their answers", func(t *testing.T, s *site) {
			together(10, func(i int) {
				conn := s.dial(t)
				testkit.Must(t, conn.SetReadBuffer(smallBuffer))
				requests := strings.Repeat(get([]string{"/link", "/store", "/page", "/large"}[i%4]), 100)
				for {
					if _, err := io.WriteString(conn, requests); err != nil {
						if isTimeout(err) {
							t.Error("the server does not close the connection")
						}
						return
					}
				}
			})
		}, false},
		{"clients that take their answers byte by byte", func(t *testing.T, s *site) {
			together(10, func(int) {
				conn := s.dial(t)
				conn.SetReadBuffer(1)
				fmt.Fprint(conn, strings.Repeat(get("/large"), 3))
				for range 40 {
					conn.Read(make([]byte, 1))
					time.Sleep(short / 20)
				}
				conn.Close()
			})
		}, false},
		{"clients that send one request after another", func(t *testing.T, s *site) {
			together(10, func(int) {
				conn := s.dial(t)
				const requests = 1000
				var writing sync.WaitGroup
				writing.Go(func() { io.WriteString(conn, strings.Repeat(get("/link"), requests)) })
				said, _ := io.ReadAll(io.LimitReader(conn, int64(requests*len(answerTo(t, s, "/link")))))
				writing.Wait()
				if n := strings.Count(string(said), "HTTP/1.1 302"); n != requests {
					t.Errorf("%d of %d requests answered", n, requests)
				}
				conn.Close()
			})
		}, true},
		{"clients that send headers without end", func(t *testing.T, s *site) {
			together(10, func(int) {
				conn := s.dial(t)
				fmt.Fprint(conn, "GET /link HTTP/1.1\r\nHost: a\r\n")
				for {
					if _, err := io.WriteString(conn, strings.Repeat("X: y\r\n", 500)); err != nil {
						return
					}
				}
			})
		}, false},
		{"clients that send lines without end", func(t *testing.T, s *site) {
			together(10, func(int) {
				conn := s.dial(t)
				for {
					if _, err := io.WriteString(conn, strings.Repeat("\r\n", 1000)); err != nil {
						return
					}
				}
			})
		}, false},
		{"clients that send noise", func(t *testing.T, s *site) {
			together(50, func(i int) {
				random := rand.New(rand.NewPCG(uint64(i), 1))
				noise := []byte(get("/link") + get("/store"))
				for range 1 + i%5 {
					noise[random.IntN(len(noise))] = byte(random.Uint32())
				}
				conn := s.dial(t)
				conn.Write(noise)
				conn.CloseWrite()
				wantEnd(t, conn, "")
			})
		}, false},
	} {
		t.Run(abuse.name, func(t *testing.T) {
			t.Parallel()
			eachWay(t, func(t *testing.T, loops int) {
				t.Parallel()
				s := start(t, loops, func(s *site) {
					s.ln = listenSmall(t)
					if !abuse.slow {
						s.cfg.ReadTimeout, s.cfg.WriteTimeout, s.cfg.IdleTimeout = short, short, short
					}
				})
				done := make(chan struct{})
				var others sync.WaitGroup
				others.Go(func() {
					for {
						select {
						case <-done:
							return
						case <-time.After(short / 20):
							conn, err := net.Dial("tcp", s.addr)
							if err == nil {
								conn.SetDeadline(time.Now().Add(testkit.Patience))
								_, err = tryAsk(conn, get("/link"))
								conn.Close()
							}
							if err != nil {
								t.Errorf("others are not answered: %v", err)
							}
						}
					}
				})
				abuse.run(t, s)
				close(done)
				others.Wait()
				testkit.Eventually(t, "no connection is left", func() bool { return s.metric(t, metricOpen) == 0 })
			})
		})
	}
}

// smallBuffer is the size of the kernel's buffers where a test fills them: megabytes of answers prove no more.
const smallBuffer = 16 << 10

// listenSmall returns a listener whose connections have small buffers.
func listenSmall(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	raw, err := ln.(*net.TCPListener).SyscallConn()
	testkit.Must(t, err)
	testkit.Must(t, raw.Control(func(fd uintptr) {
		testkit.Must(t, errors.Join(syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, smallBuffer),
			syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, smallBuffer)))
	}))
	return ln
}

// together calls f in n goroutines and waits for all.
func together(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// wantEnd fails unless the server sends one answer with this status, none if it is empty, and ends the connection.
func wantEnd(t *testing.T, conn net.Conn, status string) {
	t.Helper()
	said, err := io.ReadAll(conn)
	if netErr, ok := err.(net.Error); ok && netErr.Timeout() {
		t.Errorf("the server does not end the connection")
	}
	if got := statuses(string(said)); status != "" && got != status {
		t.Errorf("the server says %q, want status %s", said, status)
	}
}

func answerTo(t testing.TB, s *site, path string) string {
	t.Helper()
	conn := s.dial(t)
	defer conn.Close()
	fmt.Fprint(conn, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
	var all strings.Builder
	for lines := bufio.NewReader(conn); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Error(err)
			return ""
		}
		all.WriteString(line)
		if line == "\r\n" {
			return all.String()
		}
	}
}
