//go:build !engines

package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"linkstream/edge/spool"
	linksqlite "linkstream/schema/linkstore/sqlite"
	"linkstream/schema/sqlite"
	"linkstream/schema/testkit"
)

// TestStandaloneStopsInOrder stops a busy standalone while a request to the API is under way. The request keeps the
// shutdown at its first step until the test has looked at it.
func TestStandaloneStopsInOrder(t *testing.T) {
	t.Parallel()
	s := startStandalone(t)
	s.owner().Alias(t, "visited", "https://example.com/")
	load := startLoad([]string{s.edge}, 1, visitPause, target{hash: "visited"})
	testkit.Eventually(t, "a click is counted", func() bool { return s.owner().Total(t, "visited") > 0 })
	request := startCreation(t, s)
	running := s.programs[0].process
	before := running.Output.String()
	running.Signal(t, syscall.SIGTERM)

	t.Run("the edge and the API stop listening at once", func(t *testing.T) {
		for _, base := range []string{s.edge, s.api} {
			testkit.Eventually(t, base+" refuses connections", func() bool {
				conn, err := net.Dial("tcp", address(base))
				if err == nil {
					conn.Close()
				}
				return err != nil
			})
		}
	})
	visited := load.stop(t)[0]
	t.Run("the edge ships its clicks, and ingest counts them while the API serves", func(t *testing.T) {
		s.programs[0].awaitMetric(t, counterCounted, func(n float64) bool { return int64(n) >= visited.answered })
	})
	t.Run("the request under way is answered", func(t *testing.T) {
		if status := request.finish(t); status != http.StatusCreated {
			t.Errorf("status %d, want %d", status, http.StatusCreated)
		}
	})
	<-running.Exited
	t.Run("nothing fails", func(t *testing.T) {
		if running.Err != nil {
			t.Errorf("ended with %v, want exit code 0", running.Err)
		}
		for line := range strings.Lines(strings.TrimPrefix(running.Output.String(), before)) {
			if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
				t.Errorf("logged: %s", line)
			}
		}
	})
	t.Run("no click is left in the spool", func(t *testing.T) {
		cfg := spool.DefaultConfig()
		cfg.Dir = filepath.Join(s.data, "spool")
		clicks, err := spool.Open(cfg, slog.New(slog.DiscardHandler))
		testkit.Must(t, err)
		defer testkit.Close(t, clicks)
		testkit.Equal(t, "pending clicks", clicks.Pending(), 0)
	})
	t.Run("all clicks are counted", func(t *testing.T) {
		clicks, err := sqlite.CountOf(t.Context(), filepath.Join(s.data, "clicks.db"))
		testkit.Must(t, err)
		if clicks < visited.answered || clicks > visited.answered+visited.cut {
			t.Errorf("%d clicks, %d were answered and %d interrupted", clicks, visited.answered, visited.cut)
		}
		links, err := linksqlite.CountLinks(t.Context(), filepath.Join(s.data, "links.db"))
		testkit.Must(t, err)
		testkit.Equal(t, "links", links, 2)
	})
}

// creation is a request to create a link, whose body is not sent yet.
type creation struct {
	conn   net.Conn
	answer *bufio.Reader
}

// goodBody is a valid request to shorten.
const goodBody = `{"long_url":"https://example.com/"}`

// startCreation sends the header of a request and waits until the server asks for the body.
func startCreation(t *testing.T, s *system) *creation {
	t.Helper()
	c := &creation{conn: dial(t, s.api)}
	c.answer = bufio.NewReader(c.conn)
	_, err := fmt.Fprintf(c.conn, "POST /api/v1/shorten HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
		address(s.api), s.token, len(goodBody))
	testkit.Must(t, err)
	for line := "100 Continue"; line != "\r\n"; {
		line, err = c.answer.ReadString('\n')
		testkit.Must(t, err)
	}
	return c
}

// finish sends the body and returns the status of the answer.
func (c *creation) finish(t *testing.T) int {
	t.Helper()
	_, err := io.WriteString(c.conn, goodBody)
	testkit.Must(t, err)
	res, err := http.ReadResponse(c.answer, nil)
	testkit.Must(t, err)
	testkit.Must(t, res.Body.Close())
	return res.StatusCode
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
