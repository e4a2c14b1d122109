package eventloop_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linkstream/schema/testkit"
)

func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		s := start(t, loops, func(s *site) { s.cfg.MaxConnectionsPerAddress = 3 })
		var open []net.Conn
		for range 3 {
			conn := s.dial(t)
			ask(t, conn, get("/link"))
			open = append(open, conn)
		}
		for range 2 {
			conn := s.dial(t)
			resp := ask(t, conn, get("/link"))
			if resp.StatusCode() != 429 || !resp.ConnectionClose() {
				t.Errorf("one too many is answered %d", resp.StatusCode())
			}
			wantEnd(t, conn, "")
		}
		for _, conn := range open { // which stay
			ask(t, conn, get("/store"))
		}
		if n := s.metric(t, metricAddress); n != 2 {
			t.Errorf("%d connections were refused, want 2", n)
		}
		if n := s.log.Count("-edge.max-connections-per-address"); n != 1 {
			t.Errorf("said %d times, want once:\n%s", n, s.log.String())
		}
		open[0].Close()
		testkit.Eventually(t, "there is room again", func() bool { return s.metric(t, metricOpen) == 2 })
		ask(t, s.dial(t), get("/link"))
		if other := s.dialFrom(t, "127.0.0.2"); ask(t, other, get("/link")).StatusCode() != 302 {
			t.Error("another address is refused, too")
		}
	})
	eachWay(t, func(t *testing.T, loops int) {
		s := start(t, loops, func(s *site) {
			s.cfg.MaxConnectionsPerAddress = 1
			s.cfg.Exempt = netip.MustParsePrefix("127.0.0.0/8").Contains
		})
		for range 5 {
			if resp := ask(t, s.dial(t), get("/link")); resp.StatusCode() != 302 {
				t.Errorf("an address that is exempt is answered %d", resp.StatusCode())
			}
		}
	})
}

// What the log says of one trouble does not keep it from telling of another one.
func TestTroublesAreLoggedApart(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		s := start(t, loops, func(s *site) { s.cfg.MaxConnections, s.cfg.MaxConnectionsPerAddress = 2, 1 })
		defer close(s.gate)
		for i, addr := range []string{"127.0.0.1", "127.0.0.2"} {
			_, err := io.WriteString(s.dialFrom(t, addr), get("/wait"))
			testkit.Must(t, err)
			testkit.Eventually(t, "the request is under way", func() bool { return s.waiting.Load() == int64(i+1) })
		}
		for range 2 {
			testkit.Equal(t, "the same address", ask(t, s.dialFrom(t, "127.0.0.1"), get("/link")).StatusCode(), 429)
			testkit.Equal(t, "one too many", ask(t, s.dialFrom(t, "127.0.0.3"), get("/link")).StatusCode(), 503)
		}
		for _, flag := range []string{"-edge.max-connections-per-address ", "-edge.max-connections "} {
			testkit.Equal(t, "times that the log names "+flag, s.log.Count(flag), 1)
		}
	})
}

func (s *site) dialFrom(t testing.TB, addr string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
	conn, err := dialer.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(testkit.Patience))
	return conn
}

func TestLongestIdleMakesRoom(t *testing.T) {
	for _, loops := range []int{1, 3} {
		t.Run(fmt.Sprintf("with %d loops", loops), func(t *testing.T) {
			s := start(t, loops, func(s *site) { s.cfg.MaxConnections, s.cfg.MaxConnectionsPerAddress = 10, 0 })
			var conns []net.Conn
			for range 10 {
				conn := s.dial(t)
				ask(t, conn, get("/link"))
				conns = append(conns, conn)
			}
			for _, i := range []int{0, 1, 4} { // are not the longest idle any more
				ask(t, conns[i], get("/link"))
			}
			for range 4 {
				if resp := ask(t, s.dial(t), get("/link")); resp.StatusCode() != 302 {
					t.Errorf("a new client is answered %d", resp.StatusCode())
				}
			}
			for i, conn := range conns {
				if i == 2 || i == 3 || i == 5 || i == 6 {
					wantEnd(t, conn, "")
				} else if resp, err := tryAsk(conn, get("/link")); err != nil || resp.StatusCode() != 302 {
					t.Errorf("connection %d: %v, error %v", i, resp, err)
				}
			}
			if n := s.metric(t, metricShed); n != 4 {
				t.Errorf("%d connections made room, want 4", n)
			}
		})
	}
	t.Run("but not those in use", func(t *testing.T) {
		eachWay(t, func(t *testing.T, loops int) {
			s := start(t, loops, func(s *site) { s.cfg.MaxConnections = 5 })
			var conns []net.Conn
			for range 5 {
				conn := s.dial(t)
				io.WriteString(conn, get("/wait"))
				conns = append(conns, conn)
			}
			testkit.Eventually(t, "all are in use", func() bool { return s.waiting.Load() == 5 })
			conn := s.dial(t)
			if resp := ask(t, conn, get("/link")); resp.StatusCode() != 503 {
				t.Errorf("one too many is answered %d", resp.StatusCode())
			}
			close(s.gate)
			for _, conn := range conns {
				if resp, err := readAnswer(conn); err != nil || string(resp.Body()) != "waited" {
					t.Errorf("answered %v, error %v", resp, err)
				}
			}
		})
	})
}

// childEnv makes the test program a server with few descriptors: it names the number of loops.
const childEnv = "LINKSTREAM_TEST_FEW_DESCRIPTORS"

const (
	fewDescriptors   = 64
	outOfDescriptors = "too many open files" // says the server's log
)

func runChild() bool {
	loops := os.Getenv(childEnv)
	if loops == "" {
		return false
	}
	var n int
	fmt.Sscan(loops, &n)
	limit := unix.Rlimit{Cur: fewDescriptors, Max: fewDescriptors}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		fmt.Println(err)
		return true
	}
	t := &childTB{}
	s := start(t, n, nil)
	fmt.Println(s.addr)
	if err := testkit.Poll(testkit.Patience, func() error {
		if !s.log.Contains(outOfDescriptors) {
			return errors.New("the log does not say what it has run out of")
		}
		return nil
	}); err != nil {
		fmt.Println(err)
	}
	fmt.Println("exhausted")
	io.Copy(io.Discard, os.Stdin) // until the test is done
	s.stop()
	fmt.Println("stopped", s.log.String())
	return true
}

// childTB is what start wants of a test, in a process that is none.
type childTB struct{ testing.TB }

func (*childTB) Helper()           {}
func (*childTB) Cleanup(func())    {}
func (*childTB) Fatal(args ...any) { fmt.Println(args...); os.Exit(1) }
func (*childTB) Errorf(format string, args ...any) {
	fmt.Printf(format+"\n", args...)
}

func TestServerOutlivesDescriptors(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, loops int) {
		t.Parallel()
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), fmt.Sprint(childEnv, "=", loops))
		stdin, err := child.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		defer child.Process.Kill()
		var addr string
		if _, err := fmt.Fscan(stdout, &addr); err != nil {
			t.Fatal(err)
		}
		s := &site{addr: addr}
		// Twice as many as it has descriptors for: those that are answered hold theirs, or have to let go.
		var conns []net.Conn
		var answered sync.WaitGroup
		for range 2 * fewDescriptors {
			conn := s.dial(t)
			conns = append(conns, conn)
			answered.Go(func() { tryAsk(conn, get("/link")) })
		}
		var state string
		if _, err := fmt.Fscan(stdout, &state); err != nil || state != "exhausted" {
			t.Errorf("the server says %q, error %v", state, err)
		}
		for _, conn := range conns {
			conn.Close()
		}
		answered.Wait()
		for range 10 {
			if resp := ask(t, s.dial(t), get("/link")); resp.StatusCode() != 302 {
				t.Errorf("afterwards: answered %d", resp.StatusCode())
			}
		}
		stdin.Close()
		last, _ := io.ReadAll(stdout)
		if err := child.Wait(); err != nil || !strings.Contains(string(last), "stopped") {
			t.Errorf("the server ended with %v: %s", err, last)
		}
		if !strings.Contains(string(last), outOfDescriptors) {
			t.Errorf("the log does not say what it has run out of: %s", last)
		}
	})
}
