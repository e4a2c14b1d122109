package request

import (
	"crypto/rand"

	"github.com/valyala/fasthttp"
)

// IDHeader is the header of requests and answers with the id by which clients, proxies and the log name a request.
const IDHeader = "X-Request-Id"

// maxID bounds an id that a client has chosen: every log line of its request has it.
const maxID = 128

type idKey struct{}

// AssignID gives a request an id: that in its header if it is a valid one, so that an id of a proxy or client goes
// on, or a new random one.
func AssignID(http *fasthttp.RequestCtx) {
	id := string(http.Request.Header.Peek(IDHeader))
	if !validID(id) {
		id = rand.Text()
	}
	http.SetUserValue(idKey{}, id)
}

// ID returns the id of a request, "" if it has none.
func ID(http *fasthttp.RequestCtx) string {
	id, _ := http.UserValue(idKey{}).(string)
	return id
}

// AnswerID writes the id of a request into its answer.
func AnswerID(http *fasthttp.RequestCtx) { http.Response.Header.Set(IDHeader, ID(http)) }

// validID reports whether an id may stand in a log: 1 to 128 letters, digits, and characters of UUIDs, base64 and
// trace ids.
func validID(id string) bool {
	if len(id) == 0 || len(id) > maxID {
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
