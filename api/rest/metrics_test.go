package rest_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"linkstream/api/clickreport"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// metrics returns the counts by hash, host and kind. It checks the form, which the Prometheus of deploy/test/outside
// reads, too.
func (c caller) metrics(t *testing.T) map[string]string {
	t.Helper()
	a := c.get(t, "/api/v1/metrics")
	testkit.Equal(t, "status", a.status, http.StatusOK)
	testkit.Equal(t, "type", a.header.Get("Content-Type"), "application/openmetrics-text; version=1.0.0; charset=utf-8")
	lines := strings.SplitAfter(a.raw, "\n")
	testkit.Equal(t, "type of the family", lines[0], "# TYPE linkstream_link_clicks counter\n")
	if !strings.HasPrefix(lines[1], "# HELP linkstream_link_clicks ") || !strings.HasSuffix(a.raw, "\n# EOF\n") {
		t.Errorf("%s…\n…%s", a.raw[:min(300, len(a.raw))], a.raw[max(0, len(a.raw)-20):])
	}
	const value = `"((?:[^"\\\n]|\\[\\"n])*)"`
	line := regexp.MustCompile(`^linkstream_link_clicks_total\{hash=` + value + `,domain=` + value +
		`,kind="(people|bots)"\} ([0-9]+)\n$`)
	counts := map[string]string{}
	for _, text := range lines[2 : len(lines)-2] {
		part := line.FindStringSubmatch(text)
		if part == nil {
			t.Fatalf("%q", text)
		}
		if key := strings.Join(part[1:4], " "); counts[key] != "" {
			t.Errorf("%s occurs twice", key)
		} else {
			counts[key] = part[4]
		}
	}
	return counts
}

func TestMetrics(t *testing.T) {
	s := start(t)
	owner, other := s.caller(t, "owner@example.org"), s.caller(t, "other@example.org")
	testkit.Equal(t, "metrics without links", owner.metrics(t), map[string]string{})
	domain := owner.addDomain(t, "go.example.org", true)
	ids := map[string]int64{}
	for _, fields := range []map[string]any{{"custom_alias": "one"}, {"custom_alias": "one", "domain_id": domain},
		{"custom_alias": "gone"}} {
		fields["long_url"] = "https://example.com/"
		owner.link(t, fields)
		host := either(fields["domain_id"] == nil, "sho.rt", "go.example.org")
		of, _ := fields["domain_id"].(int64)
		link, err := schema.FindLink(t.Context(), s.links, of, fmt.Sprint(fields["custom_alias"]))
		testkit.Must(t, err)
		ids[host+"/"+link.Hash] = link.ID
	}
	other.link(t, map[string]any{"long_url": "https://example.com/", "custom_alias": "theirs"})
	strange := schema.Link{AccountID: owner.account.ID, Hash: "a\"b\\c\nd", URL: "https://example.com/", Active: true,
		CreatedAt: time.Now()}
	testkit.Must(t, s.links.CreateLink(t.Context(), &strange))
	owner.request(t, http.MethodDelete, "/api/v1/links/gone", "").want(t, http.StatusOK)
	s.count(t, ids["go.example.org/one"], 3, time.Now(), schema.Desktop, "Chrome")
	s.count(t, ids["go.example.org/one"], 2, time.Now().AddDate(0, 0, -90), schema.Bot, "curl")
	want := map[string]string{"one sho.rt people": "0", "one sho.rt bots": "0", "one go.example.org people": "3",
		"one go.example.org bots": "2", `a\"b\\c\nd sho.rt people`: "0", `a\"b\\c\nd sho.rt bots`: "0"}
	testkit.Equal(t, "metrics", owner.metrics(t), want)
	s.count(t, ids["sho.rt/one"], 1, time.Now(), schema.Bot, "curl")
	want["one sho.rt bots"] = "1"
	testkit.Equal(t, "metrics right after a click", owner.metrics(t), want)
	testkit.Equal(t, "metrics of another account", other.metrics(t), map[string]string{"theirs sho.rt people": "0",
		"theirs sho.rt bots": "0"})
}

func either[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

// An account with more links has metrics of those with the most clicks in 30 days, and of the newest.
func TestMetricsOfManyLinks(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "owner@example.org")
	var all []int64
	for i := range clickreport.TopLinks + 3 {
		link := schema.Link{AccountID: owner.account.ID, Hash: fmt.Sprint("link", i), URL: "https://example.com/",
			Active: true, CreatedAt: time.Now()}
		testkit.Must(t, s.links.CreateLink(t.Context(), &link))
		all = append(all, link.ID)
	}
	s.count(t, all[0], 1, time.Now(), schema.Desktop, "Chrome")
	s.count(t, all[1], 5, time.Now().AddDate(0, 0, -31), schema.Desktop, "Chrome") // too long ago
	found := owner.metrics(t)
	testkit.Equal(t, "series", len(found), 2*clickreport.TopLinks)
	for i, listed := range map[int]bool{0: true, 1: false, 2: false, 3: false, 4: true, clickreport.TopLinks + 2: true} {
		if got := found[fmt.Sprintf("link%d sho.rt people", i)]; (got != "") != listed {
			t.Errorf("link%d has %q", i, got)
		}
	}
	s.count(t, all[0], 2, time.Now(), schema.Desktop, "Chrome")
	testkit.Equal(t, "clicks right after others", owner.metrics(t)["link0 sho.rt people"], "3")
}
