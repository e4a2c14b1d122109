package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

// webhookPause is longer than visitPause: a receiver that refuses half of all requests takes its time.
const webhookPause = 100 * time.Millisecond

// TestWebhooksOfClicks kills all programs, and on real engines also stops the broker and Postgres, under load. A receiver that refuses half
// of all requests, answers late, hangs and dies hears of each counted click once.
func TestWebhooksOfClicks(t *testing.T) {
	t.Parallel()
	const allowed = "LINKSTREAM_API_WEBHOOK_ALLOW=127.0.0.0/8"
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		s := startSystem(t, allowed)
		testWebhooksOfClicks(t, s, func(t *testing.T) {
			for range kills {
				s.killEach(t)
			}
		})
	})
	t.Run("engines", func(t *testing.T) {
		t.Parallel()
		c := startCluster(t, allowed)
		c.start2ndAPI(t)
		testWebhooksOfClicks(t, c.system, func(t *testing.T) {
			c.killEach(t)
			for _, engine := range []*testengines.Engine{c.kafka, c.postgres} {
				testkit.Must(t, engine.Kill())
				<-time.After(2 * time.Second)
				testkit.Must(t, engine.Start(t.Context()))
				c.awaitReady(t)
			}
			c.killEach(t)
		})
	})
}

// start2ndAPI adds an api process: both are members of the group that reads for webhooks.
func (s *system) start2ndAPI(t *testing.T) {
	t.Helper()
	s.add(t, "api", "http://"+testkit.FreeAddress(t)).start(t)
}

// killEach kills one program after the other.
func (s *system) killEach(t *testing.T) {
	for _, p := range s.programs {
		p.awaitReady(t)
		<-time.After(700 * time.Millisecond)
		p.kill(t)
		p.launch(t)
	}
	s.awaitReady(t)
}

// clickHearer is the receiver of a webhook of clicks. A faulty one remembers a message when it comes first, and accepts it the second time.
type clickHearer struct {
	listener net.Listener
	faulty   bool

	mu      sync.Mutex
	secret  string
	bodies  map[string]string // by webhook-id
	clicks  map[string]string // webhook-ids by the IDs of clicks
	ofLinks map[string]int64  // clicks by hash
	calls   int
	largest int // clicks in a message
	wrong   []error
}

func listenForClicks(t *testing.T, faulty bool) *clickHearer {
	t.Helper()
	h := &clickHearer{faulty: faulty, bodies: map[string]string{}, clicks: map[string]string{}, ofLinks: map[string]int64{}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.listener = server.Listener
	return h
}

func (h *clickHearer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender was killed
	}
	h.mu.Lock()
	messages := len(h.bodies)
	if err := h.hear(body, req.Header); err != nil {
		h.wrong = append(h.wrong, err)
	}
	h.calls++
	isNew := len(h.bodies) > messages
	h.mu.Unlock()
	if !h.faulty || !isNew {
		return
	}
	switch messages {
	case 1:
		<-req.Context().Done() // it hangs until the sender gives up
	case 2:
		panic(http.ErrAbortHandler) // it dies
	case 3:
		<-time.After(3 * time.Second)
	default:
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (h *clickHearer) hear(body []byte, header http.Header) error {
	checker, err := standardwebhooks.NewWebhook(h.secret)
	if err != nil {
		return err
	}
	if err := checker.Verify(body, header); err != nil {
		return err
	}
	id := header.Get("webhook-id")
	if before, again := h.bodies[id]; again {
		if before != string(body) {
			return fmt.Errorf("%s came with another body", id)
		}
		return nil
	}
	h.bodies[id] = string(body)
	var message struct {
		Type string
		Data struct{ Clicks []struct{ ID, Hash string } }
	}
	if err := json.Unmarshal(body, &message); err != nil || message.Type != "link.clicked" {
		return fmt.Errorf("type %q: %w", message.Type, err)
	}
	h.largest = max(h.largest, len(message.Data.Clicks))
	for _, c := range message.Data.Clicks {
		if other, again := h.clicks[c.ID]; again {
			return fmt.Errorf("click %s is in %s and in %s", c.ID, other, id)
		}
		h.clicks[c.ID] = id
		h.ofLinks[c.Hash]++
	}
	return nil
}

// addTo creates the webhook.
func (h *clickHearer) addTo(t *testing.T, owner caller, filter string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	a := owner.Call(t, http.MethodPost, "/api/v1/webhooks",
		`{"url":"http://`+h.listener.Addr().String()+`/","events":["link.clicked"],"people_only":false`+filter+`}`)
	testkit.Must(t, a.IsStatus(http.StatusCreated))
	h.secret = a.Body["secret"].(string)
}

// await waits until the receiver has heard of as many clicks as are counted, by hash.
func (h *clickHearer) await(t *testing.T, counted map[string]int64) {
	t.Helper()
	testkit.SucceedsWithin(t, 4*time.Minute, func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		return testkit.Mismatch("clicks heard", h.ofLinks, counted)
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, err := range h.wrong {
		t.Error(err)
	}
	if h.largest > 500 {
		t.Errorf("a message has %d clicks", h.largest)
	}
	t.Logf("%d clicks in %d messages, the largest of %d, by %d calls", len(h.clicks), len(h.bodies), h.largest, h.calls)
}

func testWebhooksOfClicks(t *testing.T, s *system, faults func(*testing.T)) {
	owner := s.owner()
	owner.Alias(t, "early", "https://example.com/")
	s.click(t, "early") // before anybody hears, so that lanes are met in their middle
	testkit.Succeeds(t, func() error { return testkit.Mismatch("clicks", owner.Total(t, "early"), int64(1)) })
	targets := []target{{hash: "heard-1"}, {hash: "heard-2"}}
	for _, link := range targets {
		owner.Alias(t, link.hash, "https://example.com/")
	}
	faulty, steady := listenForClicks(t, true), listenForClicks(t, false)
	faulty.addTo(t, owner, `,"tag":"heard"`)
	steady.addTo(t, owner, `,"hash":"heard-2"`)
	for _, link := range targets {
		testkit.Must(t, owner.Call(t, http.MethodPatch, "/api/v1/links/"+link.hash, `{"tags":["heard"]}`).IsStatus(http.StatusOK))
	}
	load := startLoad([]string{s.edge}, uint64(time.Now().UnixNano()), webhookPause, targets...)
	faults(t)
	targets = load.stop(t)
	checkTotals(t, owner, targets)
	s.wantVerified(t)
	counted := map[string]int64{}
	for _, link := range targets {
		counted[link.hash] = owner.Total(t, link.hash)
	}
	faulty.await(t, counted)
	delete(counted, "heard-1")
	steady.await(t, counted)
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
