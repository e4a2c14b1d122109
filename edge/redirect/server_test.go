package redirect_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// exchange connects to addr, sends text, and returns the response. The server must close the connection.
func exchange(t *testing.T, addr, text string) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	testkit.Must(t, err)
	defer conn.Close()
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	_, _ = io.WriteString(conn, text) // the server may have closed it before the end
	answer, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server did not close the connection")
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), nil)
	if err != nil {
		t.Fatalf("read answer %q: %v", answer, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	testkit.Must(t, err)
	return resp, string(body)
}

func TestRejectedRequests(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, func(e *edge) { e.conns.ReadTimeout = 200 * time.Millisecond })
		addr := e.serve(t, loops)
		for _, c := range []struct {
			name, sent string
			status     int
		}{
			{"an incomplete header", "GET /abc HTTP/1.1\r\nHost: sho", 408},
			{"an incomplete body", "POST /abc HTTP/1.1\r\nHost: sho.rt\r\nContent-Length: 5\r\n\r\nab", 408},
			{"a header too large", "GET /abc HTTP/1.1\r\nHost: sho.rt\r\nX: " + strings.Repeat("y", 33<<10) + "\r\n\r\n", 431},
			{"a path too long", "GET /" + strings.Repeat("a", 33<<10) + " HTTP/1.1\r\nHost: sho.rt\r\n\r\n", 431},
			{"a body too large", "POST /abc HTTP/1.1\r\nHost: sho.rt\r\nContent-Length: 2000\r\n\r\n", 413},
			{"not HTTP", "hello\r\n\r\n", 400},
		} {
			t.Run(c.name, func(t *testing.T) {
				resp, body := exchange(t, addr, c.sent)
				if resp.StatusCode != c.status || !resp.Close {
					t.Errorf("answered %d, closing: %t; want %d", resp.StatusCode, resp.Close, c.status)
				}
				checkPage(t, "GET", resp, body)
			})
		}
	})
}

// A short domain below a site gets the cookies of the site. The grant for a link's password may be among them.
func TestLargeCookies(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, func(e *edge) { e.check = rightPassword })
		e.link(t, 0, "abc", "https://example.com/")
		e.extend(t, "secret", schema.Behaviour{Password: 1})
		addr := e.serve(t, loops)
		granted, _ := sendBody(t, addr, "POST", "http://sho.rt/secret", "password=x", "Cookie", siteCookies)
		testkit.Equal(t, "with the password", granted.StatusCode, http.StatusSeeOther)
		grant := granted.Cookies()[0]
		for range 2 { // from the store, then from memory
			for _, path := range []string{"abc", "secret"} {
				resp, _ := send(t, addr, "GET", "http://sho.rt/"+path, "Cookie", siteCookies+"; "+grant.Name+"="+grant.Value)
				testkit.Equal(t, path, resp.Header.Get("Location"), "https://example.com/")
			}
		}
		testkit.Equal(t, "clicks", len(e.clicks(t)), 5)
	})
}

var siteCookies = "session=" + strings.Repeat("x", 4<<10) + "; settings=" + strings.Repeat("y", 20<<10)

func TestServerFraming(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		testkit.TestFraming(t, newEdge(t, nil).serve(t, loops), "/robots.txt", 200)
	})
}

// documented is the size of a proxy's buffer that deploy/manual/install.md asks for.
const documented = 32 << 10

// The longest Location comes from a URL of characters with four bytes in UTF-8, each byte escaped.
func TestLongestLocation(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, nil)
		const target = "http://e.co/"
		e.link(t, 0, "longest", target+strings.Repeat("\U00020000", schema.MaxURLLen-len(target)))
		resp, _ := exchange(t, e.serve(t, loops), "GET /longest HTTP/1.1\r\nHost: sho.rt\r\nConnection: close\r\n\r\n")
		want := target + strings.Repeat("%F0%A0%80%80", schema.MaxURLLen-len(target))
		if got := resp.Header.Get("Location"); resp.StatusCode != 302 || got != want {
			t.Errorf("status %d, Location of %d bytes, want %d", resp.StatusCode, len(got), len(want))
		}
		var header bytes.Buffer
		testkit.Must(t, resp.Header.Write(&header))
		if header.Len() < 23<<10 || header.Len() > documented-4<<10 {
			t.Errorf("the header has %d bytes: does it fit the buffer of %d in deploy/manual/install.md?",
				header.Len(), documented)
		}
	})
}
