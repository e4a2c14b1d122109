package service_test

import (
	"bufio"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

func TestOperatorsFraming(t *testing.T) {
	ops, _ := startOps(t, service.OpsConfig{})
	testkit.TestFraming(t, ops.Addr(), "/healthz", 200)
}

func TestStandbyFraming(t *testing.T) {
	testkit.TestFraming(t, startPort(t).Addr().String(), "/healthz", 503)
}

func BenchmarkCheckFraming(b *testing.B) {
	request := "GET /abcdefg HTTP/1.1\r\nHost: sho.rt\r\nUser-Agent: " + strings.Repeat("Mozilla/5.0 ", 9) +
		"\r\nAccept: text/html,application/xhtml+xml\r\nAccept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\n" +
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
