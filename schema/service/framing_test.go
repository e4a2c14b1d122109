package service_test

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

func TestOperatorsFraming(t *testing.T) {
	ops, _ := startOps(t, service.OpsConfig{Hosts: "a.example"})
	testkit.TestFraming(t, ops.Addr(), "/healthz", 200)
}

func TestStandbyFraming(t *testing.T) {
	testkit.TestFraming(t, startPort(t).Addr().String(), "/healthz", 503)
}

// A connection may idle for longer than an answer may take.
func TestRefusalAfterIdling(t *testing.T) {
	const writeTimeout = 20 * time.Millisecond
	refuse := func(ctx *fasthttp.RequestCtx, err error) { ctx.Error("refused", fasthttp.StatusTeapot) }
	srv := &fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}, WriteTimeout: writeTimeout,
		Logger: service.ConnLogger(slog.New(slog.DiscardHandler))}
	service.CheckRequests(srv, refuse)
	ln, err := service.Listen("127.0.0.1:0")
	testkit.Must(t, err)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	t.Cleanup(func() {
		testkit.Must(t, srv.Shutdown())
		testkit.Must(t, <-served)
	})
	for name, said := range map[string]string{
		"what is no request": "nonsense\r\n\r\n",
		"another version":    "GET / HTTP/1.9\r\nHost: a\r\n\r\n",
		"a body that waits":  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", ln.Addr().String())
			testkit.Must(t, err)
			defer conn.Close()
			answers := bufio.NewReader(conn)
			ask := func(said string) int {
				_, err := io.WriteString(conn, said)
				testkit.Must(t, err)
				answer, err := http.ReadResponse(answers, nil)
				testkit.Must(t, err)
				return answer.StatusCode
			}
			testkit.Equal(t, "status", ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 200)
			time.Sleep(2 * writeTimeout)
			if status := ask(said); status != fasthttp.StatusTeapot && status != fasthttp.StatusContinue {
				t.Errorf("status %d", status)
			}
		})
	}
}

func BenchmarkCheckFraming(b *testing.B) {
	request := "GET /abcdefg HTTP/1.1\r\nHost: sho.rt\r\nUser-Agent: " + strings.Repeat("Mozilla/5.0 ", 9) +
		"\r\nAccept: text/html,application/xhtml+xml\r\nAccept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, " +
		"deflate, br\r\n" +
		"Referer: https://news.example.org/a/page\r\nConnection: keep-alive\r\nTE: trailers\r\n\r\n"
	var header fasthttp.RequestHeader
	testkit.Must(b, header.Read(bufio.NewReader(strings.NewReader(request))))
	b.ReportAllocs()
	for b.Loop() {
		if closing, err := service.CheckFraming(&header); closing || err != nil {
			b.Fatal(closing, err)
		}
	}
}
