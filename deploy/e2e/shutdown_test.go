package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"linkstream/edge/spool"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// TestStandaloneStopsInOrder stops a busy standalone while a request to the API is under way. The request keeps the
// shutdown at its first step until the test has looked at it.
func TestStandaloneStopsInOrder(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	s.owner().alias(t, "visited", "https://example.com/")
	load := startLoad([]string{s.edge}, 1, visitPause, target{hash: "visited"})
	testkit.Eventually(t, "a click is counted", func() bool { return s.owner().total(t, "visited") > 0 })
	request := startCreation(t, s)
	running := s.programs[0].process
	before := running.output.String()
	running.signal(t, syscall.SIGTERM)

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
	<-running.exited
	t.Run("nothing fails", func(t *testing.T) {
		if running.err != nil {
			t.Errorf("ended with %v, want exit code 0", running.err)
		}
		for line := range strings.Lines(strings.TrimPrefix(running.output.String(), before)) {
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
	t.Run("the log has all clicks and the changes of both links", func(t *testing.T) {
		clicks, changes := readLog(t, s.data)
		if clicks < visited.answered || clicks > visited.answered+visited.cut {
			t.Errorf("%d clicks, %d were answered and %d interrupted", clicks, visited.answered, visited.cut)
		}
		testkit.Equal(t, "changes", changes, 2)
	})
}

// creation is a request to create a link, whose body is not sent yet.
type creation struct {
	conn   net.Conn
	answer *bufio.Reader
}

// startCreation sends the header of a request and waits until the server asks for the body.
func startCreation(t *testing.T, s *system) *creation {
	t.Helper()
	c := &creation{conn: dial(t, s.api)}
	c.answer = bufio.NewReader(c.conn)
	_, err := fmt.Fprintf(c.conn, "POST /api/v1/shorten HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", address(s.api), s.token, len(goodBody))
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

// readLog counts the records in the log of a standalone that has stopped.
func readLog(t *testing.T, data string) (clicks, changes int64) {
	t.Helper()
	secret, err := os.ReadFile(filepath.Join(data, "broker.secret"))
	testkit.Must(t, err)
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(filepath.Join(data, "broker")), kfake.EnableSASL())
	testkit.Must(t, err)
	defer broker.Close()
	cfg := stream.DefaultConfig()
	cfg.Brokers = strings.Join(broker.ListenAddrs(), ",")
	cfg.SASL, cfg.Username, cfg.Password = "scram-sha-256", "linkstream", string(secret)
	for topic, records := range map[string]*int64{cfg.Clicks: &clicks, cfg.Changes: &changes} {
		cfg.Clicks = topic
		client, err := stream.New(cfg, slog.New(slog.DiscardHandler))
		testkit.Must(t, err)
		partitions, err := client.Partitions(t.Context())
		testkit.Must(t, err)
		for p := range partitions {
			_, end, err := client.Offsets(t.Context(), p)
			testkit.Must(t, err)
			*records += end
		}
		client.Close()
	}
	return clicks, changes
}
