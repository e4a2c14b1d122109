package eventloop_test

import (
	"io"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"linkstream/schema/testkit"
)

// A client that goes on sending gets the last answer of its connection.
func TestLastAnswerIsSentToClientsThatSendMore(t *testing.T) {
	s := start(t, 1, nil)
	conn := s.dial(t)
	if _, err := io.WriteString(conn, strings.Replace(get("/hold"), "\r\n\r\n", "\r\n"+end, 1)); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the loop is held", func() bool { return s.waiting.Load() == 1 })
	if _, err := io.WriteString(conn, get("/link")); err != nil {
		t.Fatal(err)
	}
	raw, err := conn.SyscallConn()
	testkit.Must(t, err)
	testkit.Eventually(t, "the server's end has the second request", func() (arrived bool) {
		testkit.Must(t, raw.Control(func(fd uintptr) {
			unacknowledged, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
			arrived = err == nil && unacknowledged == 0
		}))
		return arrived
	})
	close(s.gate)
	if resp, err := readAnswer(conn); err != nil || resp.StatusCode() != 302 || !resp.ConnectionClose() {
		t.Errorf("answered %v, error %v", resp, err)
	}
}
