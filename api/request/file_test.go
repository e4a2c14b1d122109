package request_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/request"
	"linkstream/schema/testkit"
)

// move sends size bytes from one end of a connection to the other, in parts of 1 KiB. Each end pauses after each part.
// It returns how many arrive, and the errors of both ends.
func move(
	size int, from io.WriteCloser, sends time.Duration, to io.ReadCloser, takes time.Duration,
) (n int, sent, got error) {
	done := make(chan error, 1)
	go func() {
		defer from.Close()
		for range size >> 10 {
			time.Sleep(sends) // the client is slow; the test does not wait for a state
			if _, err := from.Write(make([]byte, 1<<10)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	some := make([]byte, 1<<10)
	for got == nil {
		var k int
		k, got = to.Read(some)
		n += k
		time.Sleep(takes) // the client is slow, too
	}
	to.Close()
	return n, <-done, got
}

// A client that reads or sends a file too slowly does not get it through, however it spreads the bytes over time. The
// time that the service takes does not count.
func TestSlowClientsOfFiles(t *testing.T) {
	const size = 4 << 20
	at := func(speed int) time.Duration { return (1 << 10) * time.Second / time.Duration(speed) }
	for _, c := range []struct {
		name            string
		client, service time.Duration // for each KiB
		whole           bool
	}{
		{"as fast as it can", 0, 0, true},
		{"at the lowest speed", at(request.FileSpeed + 100), 0, true},
		{"at twice the lowest speed, with a slow service", at(2 * request.FileSpeed), time.Second, true},
		{"at half of the lowest speed", at(request.FileSpeed / 2), 0, false},
		{"hardly", at(10), 0, false},
	} {
		inBubble(t, "reads "+c.name, func(t *testing.T) {
			server, client := net.Pipe()
			began := time.Now()
			n, sent, _ := move(size, pacedPipe{request.NewPacedWriter(server, server), nil, server}, c.service, client, c.client)
			wantMoved(t, n, size, sent, time.Since(began), c.whole, c.client)
		})
		inBubble(t, "sends "+c.name, func(t *testing.T) {
			server, client := net.Pipe()
			began := time.Now()
			n, _, got := move(size, client, c.client, pacedPipe{nil, request.NewPacedReader(server, server), server}, c.service)
			if errors.Is(got, io.EOF) {
				got = nil
			}
			wantMoved(t, n, size, got, time.Since(began), c.whole, c.client)
		})
	}
}

// pacedPipe is an end of a connection that is paced.
type pacedPipe struct {
	io.Writer
	io.Reader
	io.Closer
}

func wantMoved(t *testing.T, n, size int, err error, took time.Duration, whole bool, pause time.Duration) {
	t.Helper()
	if whole != (n == size) || whole != (err == nil) {
		t.Errorf("%d bytes of %d after %v: %v", n, size, took, err)
	}
	if !whole && (!errors.Is(err, os.ErrDeadlineExceeded) || took > 2*request.FilePatience+time.Minute+2*pause) {
		t.Errorf("it ends after %v with %v", took, err)
	}
}

// A file may take longer than the server gives to any other request, from its first byte on.
func TestReceiveFile(t *testing.T) {
	t.Parallel()
	const timeout, parts = 300 * time.Millisecond, 8
	read := map[string]func(http *fasthttp.RequestCtx) error{
		"/file": func(http *fasthttp.RequestCtx) error {
			n, err := io.Copy(io.Discard, request.ReceiveFile(http))
			if err == nil && n != parts<<10 {
				err = io.ErrUnexpectedEOF
			}
			return err
		},
		"/other": func(http *fasthttp.RequestCtx) error { return request.ReadBody(http, parts<<10) },
	}
	server := &fasthttp.Server{ReadTimeout: timeout, StreamRequestBody: true, MaxRequestBodySize: 1,
		Handler: func(http *fasthttp.RequestCtx) {
			if read[string(http.Path())](http) != nil {
				http.SetStatusCode(fasthttp.StatusRequestTimeout)
				http.SetConnectionClose()
			}
		}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Shutdown() })
	for path, want := range map[string]bool{"/file": true, "/other": false} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", listener.Addr().String())
			testkit.Must(t, err)
			defer conn.Close()
			_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", path, parts<<10)
			for i := 0; i < parts && err == nil; i++ { // a server that has given up may reset the connection
				_, err = conn.Write(make([]byte, 1<<10))
				time.Sleep(timeout / parts * 2) // the client is slow; the test does not wait for a state
			}
			var answer fasthttp.Response
			if err == nil {
				err = answer.Read(bufio.NewReader(conn))
			}
			if got := err == nil && answer.StatusCode() == fasthttp.StatusOK; got != want {
				t.Errorf("status %d, error %v", answer.StatusCode(), err)
			}
		})
	}
}
