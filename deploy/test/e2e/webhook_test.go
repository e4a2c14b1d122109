package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"linkstream/schema/testkit"
)

// TestWebhooks kills the program that has made a change as soon as it has answered. A receiver that refuses a third of all requests, after
// it has remembered them, hears of each change once, in order.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	onBothKinds(t, testWebhooks, "LINKSTREAM_API_WEBHOOK_ALLOW=127.0.0.0/8")
}

// hearer is the receiver of a webhook.
type hearer struct {
	mu     sync.Mutex
	secret string
	heard  []string // types and hashes, in the order in which their ids came first
	bodies map[string]string
	calls  int
	wrong  []error
}

func (h *hearer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	if err == nil {
		err = h.hear(body, req.Header)
	}
	if err != nil {
		h.wrong = append(h.wrong, err)
	}
	if h.calls++; h.calls%3 == 1 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (h *hearer) hear(body []byte, header http.Header) error {
	checker, err := standardwebhooks.NewWebhook(h.secret)
	if err != nil {
		return err
	}
	if err := checker.Verify(body, header); err != nil {
		return err
	}
	var message struct {
		Type string
		Data struct{ Link struct{ Hash string } }
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return err
	}
	id := header.Get("webhook-id")
	if before, again := h.bodies[id]; again && before != string(body) {
		return fmt.Errorf("%s came with %s, then with %s", id, before, body)
	} else if !again {
		h.bodies[id] = string(body)
		h.heard = append(h.heard, message.Type+" "+message.Data.Link.Hash)
	}
	return nil
}

func testWebhooks(t *testing.T, s *system) {
	h := &hearer{bodies: map[string]string{}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	owner := s.owner()
	a := owner.Call(t, http.MethodPost, "/api/v1/webhooks",
		`{"url":"`+server.URL+`/hook","events":["link.created","link.updated","link.deleted"]}`)
	testkit.Must(t, a.IsStatus(http.StatusCreated))
	h.mu.Lock()
	h.secret = a.Body["secret"].(string)
	h.mu.Unlock()
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
	testkit.SucceedsWithin(t, 3*time.Minute, func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		return testkit.Mismatch("heard", h.heard, want)
	})
	h.mu.Lock()
	for _, err := range h.wrong {
		t.Error(err)
	}
	h.mu.Unlock()
	testkit.SucceedsWithin(t, time.Minute, func() error {
		hook := owner.Get(t, "/api/v1/webhooks").Body["data"].([]any)[0].(object)
		return testkit.Mismatch("waiting", fmt.Sprint(hook["waiting_bytes"], " ", hook["dropped"], " ", hook["is_active"]), "0 0 true")
	})
}
