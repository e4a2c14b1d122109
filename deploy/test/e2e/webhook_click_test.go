package e2e_test

import (
	"net/http"
	"testing"
	"time"

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
			for range 3 {
				s.killEach(t)
			}
		})
	})
	t.Run("engines", func(t *testing.T) {
		t.Parallel()
		c := startCluster(t, allowed, sessionSetting)
		c.start2ndAPI(t)
		testWebhooksOfClicks(t, c.system, func(t *testing.T) {
			c.killEach(t)
			for _, engine := range []*testengines.Engine{c.kafka, c.postgres} {
				testkit.Must(t, engine.Kill())
				<-time.After(2 * time.Second)
				testkit.Must(t, engine.Start(t.Context()))
				c.awaitReady(t)
			}
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
	failing.awaitClicks(t, counted)
	delete(counted, "heard-1")
	steady.awaitClicks(t, counted)
	wantDelivered(t, owner)
}
