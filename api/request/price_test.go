package request_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/request"
	"linkstream/schema"
	"linkstream/schema/testkit"
	"linkstream/schema/turns"
)

func TestWork(t *testing.T) {
	const takes = time.Second
	abuser, other := turns.Account(1), turns.Account(2)
	pixels := request.Pixels(func(http *fasthttp.RequestCtx) int { return http.QueryArgs().GetUintOrZero("price") })
	do := func(w *request.Work, p request.Price, c turns.Client) error {
		return w.Do(&fasthttp.RequestCtx{}, p, c, func() error { time.Sleep(takes); return nil })
	}
	for name, price := range map[string]request.Price{"images": pixels, "writes": request.Writes} {
		inBubble(t, name+" of one account delay another one by a turn", func(t *testing.T) {
			w := request.NewWork()
			var flood sync.WaitGroup
			for range 10 {
				flood.Go(func() { testkit.Must(t, do(w, price, abuser)) })
			}
			synctest.Wait()
			began := time.Now()
			testkit.Must(t, do(w, price, other))
			if took := time.Since(began); took > 3*takes { // the call under way, one that waits, and its own
				t.Errorf("it takes %v", took)
			}
			flood.Wait()
		})
		inBubble(t, name+" of one account are refused when too many wait", func(t *testing.T) {
			w := request.NewWork()
			var flood sync.WaitGroup
			for range 100 {
				flood.Go(func() { _ = do(w, price, abuser) })
			}
			synctest.Wait()
			began := time.Now()
			if err := do(w, price, abuser); schema.ErrorCode(err) != schema.CodeBusy {
				t.Errorf("got %v", err)
			}
			testkit.Equal(t, "time", time.Since(began), 0)
			flood.Wait()
		})
	}
	inBubble(t, "that is constant takes no turn", func(t *testing.T) {
		w := request.NewWork()
		var flood sync.WaitGroup
		began := time.Now()
		for range 100 {
			flood.Go(func() { testkit.Must(t, do(w, request.Constant, abuser)) })
		}
		flood.Wait()
		testkit.Equal(t, "time of all", time.Since(began), takes)
	})
}
