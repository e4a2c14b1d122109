package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/api/apiservice"
	"linkstream/schema/testkit"
)

// An account that sends requests without end is refused before it costs much, and delays no other account.
func TestRequestsOfAnAccountArePaced(t *testing.T) {
	t.Parallel()
	s := start(t, openSignUp, func(cfg *apiservice.Config) { cfg.PagesPerSecond = 1 })
	b := s.signedIn(t)
	b.post("/dashboard/links", "long_url", "https://example.com/", "custom_alias", "mine").want(t, http.StatusSeeOther)
	form := url.Values{"csrf": {csrfField.FindStringSubmatch(b.get("/dashboard/account").body)[1]}, "active": {"true"}}
	began := time.Now()
	var edited, refused atomic.Int64
	var clients sync.WaitGroup
	for range 4 {
		window := b.copy()
		clients.Go(func() {
			for range 10 {
				switch a := window.send(http.MethodPost, "/dashboard/links/0/mine/active", form); {
				case a.status == http.StatusSeeOther:
					edited.Add(1)
				case a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") != "":
					refused.Add(1)
				default:
					t.Errorf("answered %d", a.status)
				}
			}
		})
	}
	clients.Wait()
	if n, most := edited.Load(), 10+int64(time.Since(began).Seconds()); n > most || refused.Load() == 0 {
		t.Errorf("%d forms were taken, want at most %d; %d were refused", n, most, refused.Load())
	}
	for _, path := range []string{"/dashboard", "/dashboard/sign-in"} {
		testkit.Eventually(t, path+" is refused", func() bool {
			// not at once if a second has passed: then one more request is served
			a := b.get(path)
			return a.status == http.StatusTooManyRequests && strings.Contains(a.text(), "more requests than a person would")
		})
	}
	stranger := s.browser(t)
	stranger.post("/dashboard/sign-up", "email", "eve@example.org", "password", password).want(t, http.StatusSeeOther)
	testkit.Equal(t, "the answer to another account", stranger.get("/dashboard").status, http.StatusOK)
}
