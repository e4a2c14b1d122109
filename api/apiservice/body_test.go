package apiservice_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/api/apiservice"
	"linkstream/schema/testkit"
)

// atOnce is much shorter than the time for which the server waits for a body.
const atOnce = 5 * time.Second

func TestBodies(t *testing.T) {
	links, clicks := openStores(t)
	t.Cleanup(func() { testkit.Close(t, clicks) })
	s, err := apiservice.New(config(), links, clicks, nil, discard)
	testkit.Must(t, err)
	stop := run(s)
	t.Cleanup(func() { testkit.Must(t, stop()) })
	const body = `{"long_url": "https://example.com/"}`
	head := func(token string, fields ...string) string {
		return "POST /api/v1/shorten HTTP/1.1\r\nHost: a.example\r\nContent-Type: application/json\r\nAuthorization: " +
			"Bearer " + token +
			fmt.Sprintf("\r\nContent-Length: %d\r\n", len(body)) + strings.Join(append(fields, "\r\n"), "\r\n")
	}
	get := "GET /api/v1/openapi.json HTTP/1.1\r\nHost: a.example\r\n\r\n"
	expect := "Expect: 100-Continue"
	valid := addToken(t, links)
	for _, c := range []struct {
		name, said string
		want       []int
	}{
		{"no token, and no body comes", strings.Replace(head(""), "Authorization: Bearer ", "X: y", 1), []int{401}},
		{"no valid token, and no body comes", head("abc"), []int{401}},
		{"no valid token, and the body waits", head("abc", expect), []int{401}},
		{"no such path, and the body waits", strings.Replace(head("", expect), "/api/v1/shorten", "/nothing", 1), []int{404}},
		{"a length and chunks, and the body waits", head(valid, expect, "Transfer-Encoding: identity"), []int{501}},
		{"a body that waits", head(valid, expect), []int{100}},
		{"a body that does not wait", head(valid) + body, []int{201}},
		{"a body in chunks", strings.Replace(head(valid), "Content-Length: 36", "Transfer-Encoding: chunked", 1) + "24\r\n" +
			body + "\r\n0\r\n\r\n", []int{201}},
		{"several requests at once", get + head(valid) + body + get + head(valid, expect) + body + get,
			[]int{200, 201, 200, 100, 201, 200}},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", s.Addr())
			testkit.Must(t, err)
			defer conn.Close()
			testkit.Must(t, conn.SetDeadline(time.Now().Add(atOnce)))
			_, err = io.WriteString(conn, c.said)
			testkit.Must(t, err)
			answers := bufio.NewReader(conn)
			for i, want := range c.want {
				answer, err := http.ReadResponse(answers, nil)
				testkit.Must(t, err)
				_, err = io.Copy(io.Discard, answer.Body)
				testkit.Must(t, err)
				testkit.Equal(t, fmt.Sprintf("status of answer %d", i), answer.StatusCode, want)
				testkit.Equal(t, "end of the connection", answer.Close, want >= 400)
			}
		})
	}
}
