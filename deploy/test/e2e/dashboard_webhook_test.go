//go:build engines

package e2e_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"linkstream/schema/testkit"
)

// TestDashboardWebhooks adds a webhook, and looks at what it delivers while its receiver works and while it does not.
func TestDashboardWebhooks(t *testing.T) {
	t.Parallel()
	s := startStandalone(t, webhooksAllowed)
	s.owner().Alias(t, "heard", "https://example.org/")
	var failing atomic.Bool
	r := listenForWebhook(t, func(w http.ResponseWriter, _ *http.Request, _ int, _ bool) {
		if failing.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, hostile)
		}
	})
	takeSecret := func(b *tab) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.secret = b.value("Secret")
	}
	awaitMessages := func(n int) {
		t.Helper()
		r.await(t, func() error { return testkit.Mismatch("messages", len(r.bodies), n) })
	}
	b := s.tab(t).signIn(s)
	b.page("/dashboard")
	b.press("Account: " + s.email)
	b.sees("Webhooks", "No webhooks yet")
	b.sees("Add a webhook", "link.clicked")
	b.fill("URL", r.server.URL+"/"+hostile)
	testkit.Equal(t, "a URL with quotes", b.follow("Add webhook"), http.StatusOK)
	b.shows("The webhook was added")
	takeSecret(b)
	b.sees("Done", "Nothing was sent yet")
	page := b.path()

	s.click(t, "heard", "User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0")
	b.shows("link.clicked", "200 in")
	r.awaitClicks(t, map[string]int64{"heard": 1})

	failing.Store(true)
	b.sees("Send a test", "A test event is on its way")
	b.shows("webhook.test", "retrying", "503 in", "failing")
	b.press("webhook.test")
	b.shows("The receiver answered 503.", hostile, `"type": "webhook.test"`)
	failing.Store(false)
	b.page(page)
	b.shows("State on Of All links") // once the test is repeated, some seconds later

	b.press("webhook.test")
	b.shows("Payload")
	r.mu.Lock()
	calls := r.calls
	r.mu.Unlock()
	b.press("Resend")
	r.await(t, func() error { return testkit.Mismatch("calls", r.calls, calls+1) })
	awaitMessages(2) // the repetition has the id of the first one

	b.page(page)
	b.press("Rotate the secret")
	b.sees("Rotate it", "The former secret signs beside it for 24 hours")
	b.sees("Done", "Send a test")
	b.sees("Send a test", "A test event is on its way")
	awaitMessages(3) // signed by the former secret, which the receiver has
	b.press("Rotate the secret")
	b.sees("Rotate it", "The new secret")
	takeSecret(b)
	b.sees("Done", "Send a test")
	b.sees("Send a test", "A test event is on its way")
	awaitMessages(4)
	other := s.tab(t).signIn(s)
	other.page(page)
	b.press("Delete")
	b.sees("Delete it", "No webhooks yet")
	other.shows("This webhook no longer exists.", "See all webhooks")
	testkit.Equal(t, "faults: the page that is gone", len(other.takeFaults()), 1)
}
