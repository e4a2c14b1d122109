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

// receiver is the receiver of a webhook. It remembers what it hears, also if it fails afterwards: a message counts
// when its id comes first.
type receiver struct {
	server *httptest.Server
	fail   func(w http.ResponseWriter, req *http.Request, known int, again bool) // nil: it never fails

	mu      sync.Mutex
	secret  string
	bodies  map[string]string // by webhook-id
	changes []string          // types and hashes of links, in the order in which their ids came first
	clicks  map[string]string // webhook-ids by the IDs of clicks
	ofLinks map[string]int64  // clicks by hash
	largest int               // clicks in a message
	calls   int
	wrong   []error
}

// listenForWebhook starts a receiver. fail is told how many messages were known before, and whether this one was
// among them.
func listenForWebhook(t *testing.T,
	fail func(w http.ResponseWriter, req *http.Request, known int, again bool)) *receiver {
	t.Helper()
	r := &receiver{fail: fail, bodies: map[string]string{}, clicks: map[string]string{}, ofLinks: map[string]int64{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

// addTo creates the webhook with the JSON members that follow its URL.
func (r *receiver) addTo(t *testing.T, owner caller, members string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	a := owner.Call(t, http.MethodPost, "/api/v1/webhooks", `{"url":"`+r.server.URL+`/hook",`+members+`}`)
	testkit.Must(t, a.IsStatus(http.StatusCreated))
	r.secret = a.Body["secret"].(string)
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender was killed
	}
	r.mu.Lock()
	known := len(r.bodies)
	if err := r.hear(body, req.Header); err != nil {
		r.wrong = append(r.wrong, err)
	}
	r.calls++
	again := len(r.bodies) == known
	r.mu.Unlock()
	if r.fail != nil {
		r.fail(w, req, known, again)
	}
}

func (r *receiver) hear(body []byte, header http.Header) error {
	checker, err := standardwebhooks.NewWebhook(r.secret)
	if err != nil {
		return err
	}
	if err := checker.Verify(body, header); err != nil {
		return err
	}
	id := header.Get("webhook-id")
	if before, again := r.bodies[id]; again {
		if before != string(body) {
			return fmt.Errorf("%s came with %s, then with %s", id, before, body)
		}
		return nil
	}
	r.bodies[id] = string(body)
	var message struct {
		Type string
		Data struct {
			Link   struct{ Hash string }
			Clicks []struct{ ID, Hash string }
		}
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return err
	}
	if message.Type != "link.clicked" {
		r.changes = append(r.changes, message.Type+" "+message.Data.Link.Hash)
		return nil
	}
	r.largest = max(r.largest, len(message.Data.Clicks))
	for _, c := range message.Data.Clicks {
		if other, again := r.clicks[c.ID]; again {
			return fmt.Errorf("click %s is in %s and in %s", c.ID, other, id)
		}
		r.clicks[c.ID] = id
		r.ofLinks[c.Hash]++
	}
	return nil
}

// awaitChanges waits until the receiver has heard of these changes, in this order.
func (r *receiver) awaitChanges(t *testing.T, want []string) {
	t.Helper()
	r.await(t, func() error { return testkit.Mismatch("heard", r.changes, want) })
}

// awaitClicks waits until the receiver has heard of as many clicks as are counted, by hash.
func (r *receiver) awaitClicks(t *testing.T, counted map[string]int64) {
	t.Helper()
	r.await(t, func() error { return testkit.Mismatch("clicks heard", r.ofLinks, counted) })
}

func (r *receiver) await(t *testing.T, heard func() error) {
	t.Helper()
	testkit.SucceedsWithin(t, 4*time.Minute, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		return heard()
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.wrong {
		t.Error(err)
	}
	if r.largest > 500 {
		t.Errorf("a message has %d clicks", r.largest)
	}
	t.Logf("%d messages by %d calls, with %d clicks, at most %d in one", len(r.bodies), r.calls, len(r.clicks), r.largest)
}

// wantDelivered waits until nothing waits for a webhook of the owner, and requires that nothing was dropped.
func wantDelivered(t *testing.T, owner caller) {
	t.Helper()
	testkit.SucceedsWithin(t, time.Minute, func() error {
		for _, hook := range owner.Get(t, "/api/v1/webhooks").Body["data"].([]any) {
			hook := hook.(object)
			if got := fmt.Sprint(hook["waiting_bytes"], " ", hook["dropped"], " ", hook["is_active"]); got != "0 0 true" {
				return fmt.Errorf("waiting, dropped, active: %s", got)
			}
		}
		return nil
	})
}
