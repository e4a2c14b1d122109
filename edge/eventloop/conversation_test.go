package eventloop_test

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
)

// conversation is what a client sends, and the statuses of the answers that both ways have to give.
type conversation struct {
	name, sent string
	statuses   string
}

const end = "Connection: close\r\n\r\n"

var conversations = []conversation{
	{"a link", get("/link"), "302"},
	{"HEAD of a link", "HEAD /link HTTP/1.1\r\nHost: a\r\n\r\n", "302"},
	{"a link, closing", "GET /link HTTP/1.1\r\nHost: a\r\n" + end, "302"},
	{"a page", get("/page"), "404"},
	{"HEAD of a page", "HEAD /page HTTP/1.1\r\nHost: a\r\n\r\n", "404"},
	{"a page, closing", "GET /page HTTP/1.1\r\nHost: a\r\n" + end, "404"},
	{"a large page", get("/large"), "200"},
	{"an answer that ends the connection", get("/goodbye") + get("/link"), "200"},
	{"from the store", get("/store"), "200"},
	{"HTTP/1.0", "GET /link HTTP/1.0\r\n\r\n", "302"},
	{"HTTP/1.0 that stays",
		"GET /link HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" +
			"GET /page HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "302 404"},
	{"HTTP/1.0 with a page", "GET /page HTTP/1.0\r\nHost: a\r\n\r\n", "404"},
	{"nothing", "", ""},
	{"an empty line", "\r\n", ""},
	{"an empty line before a request", "\r\n" + get("/link"), "302"},
	{"half a request", "GET /link HTTP/1.1\r\nHo", "400"},
	{"half a line", "GET /li", "400"},

	{"two requests at once", get("/link") + get("/page"), "302 404"},
	{"three requests, the second from the store", get("/link") + get("/store") + get("/link"), "302 200 302"},
	{"a request that waits", get("/soon"), "302"},
	{"HEAD that waits, closing", "HEAD /soon HTTP/1.1\r\nHost: a\r\n" + end, "302"},
	{"requests that wait among others",
		get("/link") + get("/soon") + get("/soon") + get("/page") + get("/never") + get("/soon"), "302 302 302 404 200 302"},
	{"a request that waits and half of the next", get("/soon") + "GET /page HTTP/1.1\r\nHo", "302 400"},
	{"a hundred requests at once, every third waits", strings.Repeat(get("/link")+get("/page")+get("/soon"), 33),
		strings.Repeat(" 302 404 302", 33)},
	{"a large page and a request that waits", get("/large") + get("/soon") + get("/link"), "200 302 302"},
	{"a request and a half", get("/link") + "GET /page HTTP/1.1\r\nHo", "302 400"},
	{"from the store and half of the next", get("/store") + "GET /page HTTP/1.1\r\nHo", "200 400"},
	{"requests after the last one", "GET /link HTTP/1.1\r\nHost: a\r\n" + end + get("/link"), "302"},
	{"a hundred requests at once", strings.Repeat(get("/link"), 100), strings.Repeat(" 302", 100)},
	{"a hundred requests at once, every third from the store", strings.Repeat(get("/link")+get("/page")+get("/store"), 33),
		strings.Repeat(" 302 404 200", 33)},
	{"more requests than a buffer holds", strings.Repeat(get("/link"), 400), strings.Repeat(" 302", 400)},

	{"a body", "POST /store HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" + get("/link"), "200 302"},
	{"a body of a GET", "GET /store HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" + get("/link"), "200 302"},
	{"a body of a GET that looks like a request",
		fmt.Sprintf("GET /link HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s",
			len(get("/store")), get("/store")) + get("/page"), "302 404"},
	{"an empty body", "GET /link HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n" + get("/page"), "302 404"},
	{"a body in chunks",
		"POST /store HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" +
			"\r\n3\r\nabc\r\n0\r\n\r\n" + get("/link"), "200 302"},
	{"a body of a GET in chunks",
		"GET /link HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + get("/page"), "302 404"},
	{"a body too large", "POST /store HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n", "413"},
	{"half a body", "POST /store HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab", "400"},
	{"Expect",
		"POST /store HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n" +
			"Content-Length: 3\r\n\r\nabc" + get("/link"), "100 200 302"},
	{"Expect of a GET", "GET /link HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n" + get("/page"), "100 302 404"},
	{"Upgrade", "GET /link HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + get("/page"), "302 404"},

	{"two lengths",
		"GET /link HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 4\r\n\r\n" + get("/page"), "400"},
	{"two lengths in one line", "GET /link HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 4\r\n\r\n" + get("/page"), "400"},
	{"a length with a sign", "GET /link HTTP/1.1\r\nHost: a\r\nContent-Length: +4\r\n\r\nabcd" + get("/page"), "400"},
	{"a negative length", "GET /link HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n" + get("/page"), "400"},
	{"a length that overflows",
		"GET /link HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551617\r\n\r\n" + get("/page"), "400"},
	{"a length before white space",
		"GET /link HTTP/1.1\r\nHost: a\r\nContent-Length : 4\r\n\r\nabcd" + get("/page"), "400"},
	{"chunks that are spelt otherwise",
		"GET /link HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n" + get("/page"), "400"},
	{"chunks twice",
		"GET /link HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" +
			"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + get("/page"), "400"},
	{"a length and chunks",
		"GET /link HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n" +
			"\r\n0\r\n\r\n" + get("/page"), "302"},
	{"the coding identity", "GET /link HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n" + get("/page"), "501"},
	{"chunks in HTTP/1.0",
		"GET /link HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + get("/page"), "400"},
	{"a chunk without a length",
		"GET /link HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n\r\n" + get("/page"), "400"},
	{"a header continued in the next line",
		"GET /link HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n" + get("/page"), "302 404"},
	{"lines without CR", "GET /link HTTP/1.1\nHost: a\n\n" + get("/page"), "302 404"},
	{"a CR in a header", "GET /link HTTP/1.1\r\nHost: a\r\nX: b\rContent-Length: 4\r\n\r\nabcd", "400"},
	{"a zero byte in a header", "GET /link HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n" + get("/page"), "400"},
	{"a header without a name", "GET /link HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n" + get("/page"), "400"},
	{"no host", "GET /link HTTP/1.1\r\n\r\n" + get("/page"), "400"},
	{"two hosts", "GET /link HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + get("/page"), "400"},
	{"a host that is none", "GET /link HTTP/1.1\r\nHost: a[b\r\n\r\n" + get("/page"), "400"},
	{"a target with its host", "GET http://b.example/link HTTP/1.1\r\nHost: a\r\n\r\n" + get("/page"), "302 404"},
	{"a target that is a star", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n" + get("/page"), "200 404"},
	{"a target without a slash", "GET link HTTP/1.1\r\nHost: a\r\n\r\n" + get("/page"), "400"},
	{"a target in escapes", "GET /%6c%69nk HTTP/1.1\r\nHost: a\r\n\r\n" + get("/page"), "302 404"},
	{"a target with dots", "GET /x/../link HTTP/1.1\r\nHost: a\r\n\r\n" + get("/page"), "302 404"},
	{"a method that is none", "G\x01T /link HTTP/1.1\r\nHost: a\r\n\r\n" + get("/page"), "400"},
	{"a method in small letters", "get /link HTTP/1.1\r\nHost: a\r\n\r\n" + get("/page"), "302 404"},
	{"HTTP/0.9", "GET /link\r\n\r\n", "400"},
	{"HTTP/0.9 that says so", "GET /link HTTP/0.9\r\n\r\n", "505"},
	{"HTTP/2.0", "GET /link HTTP/2.0\r\nHost: a\r\n\r\n" + get("/page"), "505"},
	{"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400"},
	{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"},
	{"what is not HTTP", "hello\r\n\r\n", "400"},
	{"a header too large", "GET /link HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 33_000) + "\r\n\r\n", "431"},
	{"an ordinary header that just fits", header(8<<10) + get("/page"), "302 404"},
	{"a header that is a byte too large for an ordinary one", header(8<<10 + 1), "302"},
	{"a large header ends the connection", header(9000) + get("/page"), "302"},
	{"a large header that just fits", header(32 << 10), "302"},
	{"a large header behind other requests", get("/link") + get("/store") + get("/page") + header(20_000),
		"302 200 404 302"},
	{"a header a byte too large", header(32<<10 + 1), "431"},
	{"a target too long", "GET /" + strings.Repeat("y", 33_000) + " HTTP/1.1\r\nHost: a\r\n\r\n", "431"},
	{"a long target", "GET /link?" + strings.Repeat("y", 9000) + " HTTP/1.1\r\nHost: a\r\n\r\n", "302"},
	{"HEAD with a large header", "HEAD" + header(9000)[len("GET"):], "302"},
	{"HTTP/1.0 with a large header", "GET /link HTTP/1.0\r\nX: " + strings.Repeat("y", 9000) + "\r\n\r\n", "302"},
	{"a large header of many lines",
		"GET /page HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: "+strings.Repeat("y", 90)+"\r\n", 300) + "\r\n", "404"},
	{"a body behind a large header", largePost + "abc", "200"},
	{"half a body behind a large header", largePost + "ab", "400"},
	{"a body too large behind a large header", strings.Replace(largePost, "Length: 3", "Length: 5000", 1), "413"},
	{"half a large header", header(9000)[:8900], "400"},
	{"a large header without a host", "GET /link HTTP/1.1\r\nX: " + strings.Repeat("y", 9000) + "\r\n\r\n", "400"},
	{"a large header with a host that is none", "GET /link HTTP/1.1\r\nHost: a[b\r\nX: " + strings.Repeat("y", 9000) +
		"\r\n\r\n", "400"},
	{"a large header of another version", "GET /link HTTP/2.0\r\nHost: a\r\nX: " + strings.Repeat("y", 9000) + "\r\n\r\n",
		"505"},
	{"a large header with the coding identity", "GET /link HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\nX: " +
		strings.Repeat("y", 9000) + "\r\n\r\n", "501"},
}

// largePost is the header of a request with a body of three bytes.
var largePost = "POST /store HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX: " + strings.Repeat("y", 9000) + "\r\n\r\n"

// header returns a request of size bytes.
func header(size int) string {
	start, rest := "GET /link HTTP/1.1\r\nHost: a\r\nX: ", "\r\n\r\n"
	return start + strings.Repeat("y", size-len(start)-len(rest)) + rest
}

// statuses returns the status codes in what a server said.
func statuses(said string) string {
	var found []string
	for part := range strings.SplitSeq(said, "HTTP/1.1 ") {
		if code, _, ok := strings.Cut(part, " "); ok && len(code) == 3 {
			found = append(found, code)
		}
	}
	return strings.Join(found, " ")
}

// The answers of loops equal the answers of goroutines on package net, byte by byte, however the request is cut.
func TestLoopsSayWhatGoroutinesSay(t *testing.T) {
	reference := start(t, 0, nil)
	loops := []*site{start(t, 1, nil), start(t, 3, nil)}
	for _, c := range conversations {
		t.Run(c.name, func(t *testing.T) {
			want := reference.talk(t, c.sent)
			if got := statuses(want); got != strings.TrimSpace(c.statuses) {
				t.Fatalf("goroutines answer %s, want %s:\n%s", got, c.statuses, want)
			}
			for _, s := range loops {
				if got := s.talk(t, c.sent); got != want {
					t.Errorf("all at once: loops say\n%q\nwant\n%q", got, want)
				}
				for _, i := range cuts(len(c.sent)) {
					if got := s.talk(t, c.sent[:i], c.sent[i:]); got != want {
						t.Errorf("cut at %d: loops say\n%q\nwant\n%q", i, got, want)
					}
				}
			}
		})
	}
}

// cuts returns positions at which a text of some length is cut in two.
func cuts(length int) []int {
	var at []int
	step := max(length/6, 1)
	for i := 1; i < length; i += step {
		at = append(at, i)
	}
	return at
}

// byteReader hands out single bytes, so that a parser reads no further than it must.
type byteReader struct{ r io.Reader }

func (b byteReader) Read(p []byte) (int, error) { return b.r.Read(p[:min(1, len(p))]) }

func newByteReader(r io.Reader) *bufio.Reader { return bufio.NewReader(byteReader{r}) }
