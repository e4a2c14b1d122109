package e2e_test

import (
	"fmt"
	"net/http"
	"testing"

	"linkstream/schema/testkit"
)

// TestWebhooks kills the program that has made a change as soon as it has answered. A receiver that refuses a third
// of all messages, after it has remembered them, hears of each change once, in order.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	s := startSystem(t, webhooksAllowed)
	r := listenForWebhook(t, func(w http.ResponseWriter, _ *http.Request, known int, again bool) {
		if known%3 == 0 && !again {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	owner := s.owner()
	r.addTo(t, owner, `"events":["link.created","link.updated","link.deleted"]`)
	var want []string
	api := s.programs[0] // standalone or api
	for n := range 3 {
		hash := fmt.Sprint("heard-", n)
		path := "/api/v1/links/" + hash
		owner.Alias(t, hash, "https://example.com/")
		testkit.Must(t, owner.Call(t, http.MethodPatch, path, `{"title":"new"}`).IsStatus(http.StatusOK))
		testkit.Must(t, owner.Call(t, http.MethodDelete, path, "").IsStatus(http.StatusOK))
		want = append(want, "link.created "+hash, "link.updated "+hash, "link.deleted "+hash)
		if n < 2 {
			api.kill(t)
			api.start(t)
		}
	}
	r.awaitChanges(t, want)
	wantDelivered(t, owner)
}
