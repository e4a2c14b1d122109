package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// TestHistory kills a service while it imports clicks, sends them again, and follows them and clicks on paths to
// statistics and reports.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	owner := s.owner()
	owner.Link(t, object{"long_url": "https://example.com/manual", "alias": "Guide.2026", "path_mode": "append"})
	const path = "/api/v1/links/Guide.2026/history/old-site"
	day := time.Now().UTC().AddDate(0, 0, -3).Format(time.DateOnly)
	put := func(clicks int) (answer, error) {
		body := fmt.Sprintf(`{"days":[{"date":%q,"clicks":%d},{"date":"2019-01-31","clicks":1000}]}`, day, clicks)
		return owner.Try(t, http.MethodPut, path, body)
	}
	for clicks := range 3 {
		sent := make(chan error, 1)
		go func() {
			_, err := put(1 + clicks) // which may fail
			sent <- err
		}()
		for _, p := range s.programs {
			if p.name == "api" || p.name == "standalone" {
				p.kill(t)
				p.launch(t)
			}
		}
		<-sent
		s.awaitReady(t)
		for range 2 {
			testkit.Succeeds(t, func() error {
				a, err := put(1 + clicks)
				if err != nil {
					return err
				}
				return a.IsStatus(http.StatusOK)
			})
		}
		testkit.Equal(t, "clicks", owner.Total(t, "Guide.2026"), int64(1001+clicks))
	}
	for _, visited := range []string{"", "/install", "/install", "/a%20b", "/install?x=y"} {
		s.click(t, "Guide.2026"+visited, "User-Agent", desktop)
	}
	s.click(t, "Guide.2026/bots", "User-Agent", "curl/8.5.0")
	owner.WaitTotal(t, "Guide.2026", 1003+6)
	stats := owner.Stats(t, "Guide.2026")
	testkit.Equal(t, "devices", fmt.Sprint(stats["devices"]), "map[bot:1 desktop:5 other:1003]")
	testkit.Equal(t, "browsers", fmt.Sprint(stats["browsers"]), "map[Chrome:5 Imported:1003 curl:1]")
	report := owner.Get(t, "/api/v1/links/Guide.2026/report?"+week()).Want(t, http.StatusOK).Body
	totals := report["totals"].(object)
	for name, want := range map[string]int64{"clicks": 9, "people": 5, "bots": 1, "imported": 3} {
		testkit.Equal(t, name, number(t, totals, name), want)
	}
	testkit.Equal(t, "paths", names(t, report, "paths"), map[string]int64{"": 1, "install": 3, "a b": 1})
	filtered := owner.Get(t, "/api/v1/report?path=install&"+week()).Want(t, http.StatusOK).Body
	testkit.Equal(t, "people on a path", number(t, filtered["totals"].(object), "people"), 3)
	s.wantVerified(t)
}
