// Package requestid gives each request to the API and the dashboard an id, by which its client, proxies and the log name it.
package requestid

import (
	"crypto/rand"

	"github.com/valyala/fasthttp"
)

// Header is the name of the header of requests and answers.
const Header = "X-Request-Id"

// maxLen bounds an id that a client has chosen: every log line of its request has it.
const maxLen = 128

type key struct{}

// Assign gives a request an id: that in its header if it is a valid one, so that an id of a proxy or client goes on, or a new random
// one.
func Assign(http *fasthttp.RequestCtx) {
	id := string(http.Request.Header.Peek(Header))
	if !valid(id) {
		id = rand.Text()
	}
	http.SetUserValue(key{}, id)
}

// Of returns the id of a request, "" if it has none.
func Of(http *fasthttp.RequestCtx) string {
	id, _ := http.UserValue(key{}).(string)
	return id
}

// Answer writes the id of a request into its answer.
func Answer(http *fasthttp.RequestCtx) { http.Response.Header.Set(Header, Of(http)) }

// valid reports whether an id may stand in a log: 1 to 128 letters, digits, and characters of UUIDs, base64 and trace ids.
func valid(id string) bool {
	if len(id) == 0 || len(id) > maxLen {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z':
		case c == '-', c == '_', c == '.', c == ':', c == '/', c == '+', c == '=':
		default:
			return false
		}
	}
	return true
}
