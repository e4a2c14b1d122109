package request_test

import (
	"io"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"linkstream/api/request"
	"linkstream/schema/testkit"
	"linkstream/schema/turns"
)

func TestReadLarge(t *testing.T) {
	const small, limit = 64 << 10, 1 << 20
	bodyOf := func(r io.Reader, size int) *fasthttp.RequestCtx {
		http := &fasthttp.RequestCtx{}
		http.Request.SetBodyStream(r, size)
		return http
	}
	body := func(size int) *fasthttp.RequestCtx { return bodyOf(strings.NewReader(strings.Repeat("x", size)), size) }
	status := func(err error) int {
		if err == nil {
			return 200
		}
		return err.(*request.Refusal).Status
	}
	bodies, one := turns.NewBound(5000, 3000), turns.Account(1)
	var leaves []func()
	for _, c := range []struct {
		account int64
		size    int
		want    int
	}{
		{1, small + 2000, 200},
		{1, small + 1001, 429}, // takes nothing
		{1, small, 200},        // needs no room
		{1, small + 1000, 200},
		{2, small + 2001, 503},
		{2, small + 2000, 200},
		{3, small + 1, 503},
		{3, small, 200},
		{3, limit + 1, 413},
	} {
		http := body(c.size)
		leave, err := request.ReadLarge(http, limit, bodies, turns.Account(c.account))
		testkit.Equal(t, "status", status(err), c.want)
		if err == nil {
			testkit.Equal(t, "bytes read", len(http.PostBody()), c.size)
			leaves = append(leaves, leave)
		} else {
			leave()
		}
	}
	for _, leave := range leaves {
		leave()
	}
	// All bytes are free again, also the bytes of a body that failed.
	for range 3 {
		leave, err := request.ReadLarge(bodyOf(io.MultiReader(strings.NewReader(strings.Repeat("x", small+2500)), failing{}),
			-1), limit, bodies, one)
		testkit.Equal(t, "status of a body that fails", status(err), 400)
		leave()
	}
	leave, err := request.ReadLarge(body(small+3000), limit, bodies, one)
	testkit.Equal(t, "status", status(err), 200)
	leave()
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
