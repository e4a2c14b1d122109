package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// TestVisitors has visitors who come again and again, over all edges and a restart.
func TestVisitors(t *testing.T) {
	t.Parallel()
	const proxies = "LINKSTREAM_EDGE_TRUSTED_PROXIES=127.0.0.0/8"
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		s := startSystem(t, proxies)
		testVisitors(t, s, s.programs[0], s.edge)
	})
	t.Run("engines", func(t *testing.T) {
		t.Parallel()
		s := newServices(t, sharedEngines(t), proxies)
		s.start(t)
		other, base := s.startAnother(t, "edge")
		testVisitors(t, s, other, s.edge, base)
	})
}

// testVisitors kills and restarts the program killed, one of the edges.
func testVisitors(t *testing.T, s *system, killed *program, edges ...string) {
	const visitors, rounds, bots = 60, 3, 5
	owner, clicks, began := s.owner(), 0, time.Now().UTC()
	for _, hash := range []string{"visited", "another"} {
		owner.Shorten(t, object{"long_url": "https://example.com/", "custom_alias": hash}).Want(t, http.StatusCreated)
	}
	visit := func(hash, agent string, visitor int) {
		t.Helper()
		edge := edges[clicks%len(edges)]
		got := call(t, http.MethodGet, edge+"/"+hash, "", "Host", address(s.edge), "User-Agent", agent,
			"X-Forwarded-For", fmt.Sprintf("10.0.%d.%d", visitor>>8, visitor&255))
		testkit.Equal(t, "status", got.Status, http.StatusFound)
		clicks++
	}
	for round := range rounds {
		for visitor := range visitors {
			visit("visited", desktop, visitor)
		}
		if round == 0 {
			killed.kill(t)
			killed.start(t)
		}
	}
	for bot := range bots {
		visit("visited", "Googlebot/2.1", 1000+bot)
	}
	owner.WaitTotal(t, "visited", int64(clicks))
	for visitor := visitors / 2; visitor < 2*visitors; visitor++ { // half of them have been at the other link
		visit("another", desktop, visitor)
	}
	owner.WaitTotal(t, "another", visitors*3/2)
	for path, want := range map[string]int{"/links/visited/report": visitors, "/links/another/report": visitors * 3 / 2, "/report": 2 * visitors,
		"/links/visited/report?tz=Asia/Kathmandu": visitors, "/links/visited/report?interval=hour&tz=America/New_York": visitors} {
		sum := number(t, owner.Get(t, "/api/v1"+path).Want(t, http.StatusOK).Body["totals"].(object), "visitors")
		midnight := time.Now().UTC().Day() != began.Day() // who comes before and after it counts twice
		if int(sum) != want && !(midnight && int(sum) > want && int(sum) <= 2*want) {
			t.Errorf("%s: %d visitors, want %d", path, sum, want)
		}
	}
	filtered := owner.Get(t, "/api/v1/links/visited/report?device=desktop").Want(t, http.StatusOK).Body
	testkit.Equal(t, "visitors of a filtered report", filtered["totals"].(object)["visitors"], any(nil))
}
