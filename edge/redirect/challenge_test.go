package redirect_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"

	"linkstream/schema/testkit"
)

func TestChallengesOfAuthorities(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		var asked atomic.Int64
		e := newEdge(t, func(e *edge) {
			e.cfg.Challenge = func(ctx *fasthttp.RequestCtx) bool {
				asked.Add(1)
				if !strings.HasSuffix(string(ctx.Path()), "/known") {
					return false
				}
				ctx.SetBodyString("answer")
				return true
			}
		})
		addr := e.serve(t, loops)
		for path, want := range map[string]int{"/.well-known/acme-challenge/known": 200,
			"/.well-known/acme-challenge/other": 404,
			"/.well-known/other/known":          404, "/.known": 404, "/.well-known": 404} {
			resp, body := send(t, addr, "GET", "http://sho.rt"+path)
			testkit.Equal(t, "status of "+path, resp.StatusCode, want)
			if want == 200 {
				testkit.Equal(t, "answer", body, "answer")
			}
		}
		testkit.Equal(t, "challenges", asked.Load(), 2)
	})
	t.Run("without HTTPS there are none", func(t *testing.T) {
		resp, _ := send(t, newEdge(t, nil).serve(t, 1), "GET", "http://sho.rt/.well-known/acme-challenge/known")
		testkit.Equal(t, "status", resp.StatusCode, 404)
	})
}
