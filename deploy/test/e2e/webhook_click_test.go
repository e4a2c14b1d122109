package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// webhookPause is longer than visitPause: a receiver that refuses half of all requests takes its time.
const webhookPause = 100 * time.Millisecond

// webhooksAllowed lets webhooks reach the receivers of tests.
const webhooksAllowed = "LINKSTREAM_API_WEBHOOK_ALLOW=127.0.0.0/8"

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

// faulty is a receiver that refuses each message when it comes first, or worse.
func faulty(w http.ResponseWriter, req *http.Request, known int, again bool) {
	switch {
	case again:
	case known == 1:
		<-req.Context().Done() // it hangs until the sender gives up
	case known == 2:
		panic(http.ErrAbortHandler) // it dies
	case known == 3:
		<-time.After(3 * time.Second)
	default:
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// testWebhooksOfClicks causes faults under load. A receiver that refuses half of all requests, answers late, hangs
// and dies gets each counted click once.
func testWebhooksOfClicks(t *testing.T, s *system, faults func(*testing.T)) {
	owner := s.owner()
	owner.Alias(t, "early", "https://example.com/")
	s.click(t, "early") // before anybody hears, so that lanes are met in their middle
	testkit.Succeeds(t, func() error { return testkit.Mismatch("clicks", owner.Total(t, "early"), int64(1)) })
	targets := []target{{hash: "heard-1"}, {hash: "heard-2"}}
	for _, link := range targets {
		owner.Alias(t, link.hash, "https://example.com/")
	}
	failing, steady := listenForWebhook(t, faulty), listenForWebhook(t, nil)
	failing.addTo(t, owner, `"events":["link.clicked"],"people_only":false,"tag":"heard"`)
	steady.addTo(t, owner, `"events":["link.clicked"],"people_only":false,"hash":"heard-2"`)
	for _, link := range targets {
		owner.Call(t, http.MethodPatch, "/api/v1/links/"+link.hash, `{"tags":["heard"]}`).Want(t, http.StatusOK)
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
	failing.awaitClicks(t, counted)
	delete(counted, "heard-1")
	steady.awaitClicks(t, counted)
	wantDelivered(t, owner)
}
