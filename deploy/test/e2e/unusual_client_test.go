//go:build !engines

package e2e_test

import (
	"bufio"
	"errors"
	"io"
	"linkstream/schema/testkit"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

func TestRedirectOfUnusualClients(t *testing.T) {
	t.Parallel()
	s := startStandalone(t)
	owner := s.owner()
	owner.Alias(t, "there", "https://example.com/there")
	request := "GET /there HTTP/1.1\r\nHost: " + address(s.edge) + "\r\n\r\n"

	t.Run("a client that never ends its request is disconnected", func(t *testing.T) {
		conn := dial(t, s.edge)
		io.WriteString(conn, request[:len(request)-2])
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("it is still connected")
		}
	})
	t.Run("a client that sends its request byte by byte is disconnected", func(t *testing.T) {
		conn := dial(t, s.edge)
		pace := time.NewTicker(50 * time.Millisecond)
		defer pace.Stop()
		for {
			if _, err := io.WriteString(conn, "G"); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("it is still connected")
			} else if err != nil {
				return
			}
			<-pace.C
		}
	})
	t.Run("a header that is too large is an error page", func(t *testing.T) {
		wantPage(t, s.visit(t, http.MethodGet, "/there", "Cookie", strings.Repeat("c", 9000)), 431)
	})
	t.Run("pipelined requests are answered in order and counted", func(t *testing.T) {
		conn := dial(t, s.edge)
		io.WriteString(conn, strings.Repeat(request, 50))
		answers := bufio.NewReader(conn)
		for i := range 50 {
			res, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatalf("answer %d: %v", i, err)
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode != http.StatusFound {
				t.Errorf("answer %d: %s", i, res.Status)
			}
		}
		owner.WaitTotal(t, "there", 50)
	})
	t.Run("a method other than GET and HEAD is an error page and not counted", func(t *testing.T) {
		wantPage(t, s.visit(t, http.MethodPost, "/there"), http.StatusMethodNotAllowed)
		s.click(t, "there")
		owner.WaitTotal(t, "there", 51)
	})
}

// dial returns a connection with a deadline, which is closed when the test ends.
func dial(t *testing.T, base string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address(base))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(testkit.Patience))
	return conn
}
