package request_test

import (
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"linkstream/api/request"
	"linkstream/schema/testkit"
)

// answer returns the id of a request with a header, and the id in its answer.
func answer(header string) (id, answered string) {
	var http fasthttp.RequestCtx
	http.Request.Header.Set(request.IDHeader, header)
	request.AssignID(&http)
	request.AnswerID(&http)
	return request.ID(&http), string(http.Response.Header.Peek(request.IDHeader))
}

func TestAssign(t *testing.T) {
	for _, id := range []string{"a", "0190163d-8694-739b-aea5-966c26f8ad91", "Root=1-67891233-abcdef012345678912345678",
		strings.Repeat("x", 128)} {
		t.Run("keeps "+id, func(t *testing.T) {
			got, answered := answer(id)
			testkit.Equal(t, "id", got, id)
			testkit.Equal(t, "id of the answer", answered, id)
		})
	}
	for _, id := range []string{"", "two words", "a\nb", "a\"b", "ä", "\x00", strings.Repeat("x", 129)} {
		t.Run("replaces "+id, func(t *testing.T) {
			got, answered := answer(id)
			other, _ := answer(id)
			if got == id || len(got) < 26 || got == other {
				t.Errorf("ids %q and %q", got, other)
			}
			testkit.Equal(t, "id of the answer", answered, got)
		})
	}
	t.Run("a request without one has none",
		func(t *testing.T) { testkit.Equal(t, "id", request.ID(new(fasthttp.RequestCtx)), "") })
}

// An id is short and can stand in a line of a log, for any header.
func FuzzAssign(f *testing.F) {
	for _, seed := range []string{"", "abc", "a b", "\r\nSet-Cookie: a=b", strings.Repeat("é", 100)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		id, answered := answer(header)
		if len(id) == 0 || len(id) > 128 ||
			strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }) || answered != id {
			t.Fatalf("%q becomes %q and is answered as %q", header, id, answered)
		}
	})
}
