package testkit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestFraming sends requests whose end, or whose version of HTTP, servers disagree about: a proxy may then take a part
// of one request for the next one. Each must be the last one of its connection. GET of the path answers status.
func TestFraming(t *testing.T, addr, path string, status int) {
	get := func(version string, lines ...string) string {
		return "GET " + path + " " + version + "\r\nHost: a.example\r\n" + strings.Join(append(lines, "\r\n"), "\r\n")
	}
	const identity, length, chunked = "Transfer-Encoding: identity", "Content-Length: 5", "Transfer-Encoding: chunked"
	for _, c := range []struct {
		name, request string
		status        int
	}{
		// RFC 9112, section 6.1: the connection must be closed after the answer.
		{"a length and chunks", get("HTTP/1.1", length, chunked) + "0\r\n\r\n", status},
		{"chunks and a length", get("HTTP/1.1", chunked, length) + "0\r\n\r\n", status},
		{"chunks and a length in other letters", get("HTTP/1.1", "transfer-encoding: Chunked", "CONTENT-LENGTH:0") +
			"0\r\n\r\n", status},
		{"the coding identity", get("HTTP/1.1", identity), http.StatusNotImplemented},
		{"the coding identity and a length", get("HTTP/1.1", length, identity) + "01234", http.StatusNotImplemented},
		{"the coding identity in other letters", get("HTTP/1.1", "tRANSFER-eNCODING:\tIDENTITY"), http.StatusNotImplemented},
		{"another coding", get("HTTP/1.1", "Transfer-Encoding: gzip, chunked") + "0\r\n\r\n", http.StatusBadRequest},
		{"chunks in HTTP/1.0", get("HTTP/1.0", "Connection: keep-alive", chunked) + "0\r\n\r\n", http.StatusBadRequest},
		// RFC 9112, section 9.6: the client wants no further answer.
		{"close in other letters", get("HTTP/1.1", "Connection: Close"), status},
		{"close in a list", get("HTTP/1.1", "connection: TE , CLOSE,x", "TE: trailers"), status},
		{"close in a second line", get("HTTP/1.1", "Connection: TE", "Connection:close"), status},
		// RFC 9110, section 7.2: a host has no user information.
		{"a user in Host", "GET " + path + " HTTP/1.1\r\nHost: user@a.example\r\n\r\n", http.StatusBadRequest},
		{"a user in the target", "GET http://user:secret@a.example" + path + " HTTP/1.1\r\nHost: a.example\r\n\r\n",
			http.StatusBadRequest},
		{"HTTP/0.9", get("HTTP/0.9"), http.StatusHTTPVersionNotSupported},
		{"HTTP/1.2", get("HTTP/1.2"), http.StatusHTTPVersionNotSupported},
		{"HTTP/2.0 that stays", get("HTTP/2.0", "Connection: keep-alive"), http.StatusHTTPVersionNotSupported},
		{"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", http.StatusBadRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers := askRaw(t, addr, c.request+get("HTTP/1.1"))
			if len(answers) != 1 || answers[0].StatusCode != c.status || !answers[0].Close {
				t.Errorf("answers %q, want one, with status %d and Connection: close", show(answers), c.status)
			}
		})
	}
	t.Run("what is in no doubt is answered as ever", func(t *testing.T) {
		for _, request := range []string{get("HTTP/1.1"), get("HTTP/1.1", chunked) + "0\r\n\r\n",
			get("HTTP/1.1", "TE: trailers"),
			get("HTTP/1.1", "Content-Length: 0"), get("HTTP/1.1", "X: y", " Transfer-Encoding: identity"),
			"GET http://a.example" + path + "?a@b HTTP/1.1\r\nHost: a.example\r\n\r\n"} {
			answers := askRaw(t, addr, request+get("HTTP/1.1", "Connection: close"))
			if len(answers) == 0 || answers[0].StatusCode != status {
				t.Errorf("%q is answered %q, want status %d", request, show(answers), status)
			}
		}
	})
}

// askRaw sends text and returns the answers until the server closes the connection.
func askRaw(t *testing.T, addr, text string) (answers []*http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	Must(t, err)
	defer conn.Close()
	Must(t, conn.SetDeadline(time.Now().Add(Patience)))
	_, _ = io.WriteString(conn, text) // the server may close before it has read all
	_ = conn.(*net.TCPConn).CloseWrite()
	for lines := bufio.NewReader(conn); ; {
		answer, err := http.ReadResponse(lines, nil)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the server does not close the connection after %q", text)
		}
		if err != nil {
			return answers
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answers = append(answers, answer)
	}
}

func show(answers []*http.Response) (all []string) {
	for _, a := range answers {
		all = append(all, fmt.Sprint(a.StatusCode, " closing: ", a.Close))
	}
	return all
}
