//go:build deploy

package outside_test

import (
	"encoding/json"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// panel is what the tests read of a panel of the dashboard.
type panel struct {
	ID          int
	Type, Title string
	Datasource  struct{ UID string }
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ RefID, Expr, LegendFormat string }
	FieldConfig struct{ Defaults struct{ Unit string } }
}

func readDashboard(t *testing.T) (panels []panel) {
	t.Helper()
	content, err := os.ReadFile("../../grafana/linkstream.json")
	testkit.Must(t, err)
	var dashboard struct {
		Title, UID string
		Panels     []panel
	}
	testkit.Must(t, json.Unmarshal(content, &dashboard))
	testkit.Equal(t, "dashboard", dashboard.UID+" "+dashboard.Title, "linkstream linkstream")
	return dashboard.Panels
}

func TestDashboard(t *testing.T) {
	var rows []string
	ids := map[int]bool{}
	panels := readDashboard(t)
	for i, p := range panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%q is wider than the dashboard", p.Title)
		}
		for _, other := range panels[:i] {
			a, b := p.GridPos, other.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("%q covers %q", p.Title, other.Title)
			}
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		if p.Title == "" || len(p.Targets) == 0 || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}" {
			t.Errorf("the panel %d, %q, lacks a title, a query, a unit or the source of its data", p.ID, p.Title)
		}
	}
	for _, row := range []string{"Traffic", "Latency", "Cache", "Spool", "Topic", "Store", "API", "Domains"} {
		if !slices.Contains(rows, row) {
			t.Errorf("there is nothing about %s", row)
		}
	}
}

var variables = regexp.MustCompile(`\$\w+`)

// testPanels runs the queries of all panels over the time of the test. Each has to return a number, but the one of
// look-ups of domains, whose metric TestVerify in api/customdomain has.
func testPanels(t *testing.T, s *watched) {
	queries := 0
	for _, p := range readDashboard(t) {
		for _, target := range p.Targets {
			queries++
			expr := variables.ReplaceAllStringFunc(target.Expr, func(name string) string {
				switch name {
				case "$__rate_interval":
					return "20s"
				case "$__range":
					return strconv.Itoa(int(time.Since(s.began).Seconds())) + "s"
				case "$instance":
					return ".*"
				}
				t.Errorf("%q has the variable %s", p.Title, name)
				return name
			})
			found, err := s.query("query_range", url.Values{"query": {expr}, "step": {"2"},
				"start": {strconv.FormatInt(s.began.Unix(), 10)}, "end": {strconv.FormatInt(time.Now().Unix(), 10)}})
			if err != nil {
				t.Errorf("%q: %v", p.Title, err)
				continue
			}
			numbers := 0
			for _, series := range found {
				for _, value := range series.Values {
					if value[1] != "NaN" {
						numbers++
					}
				}
				for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
					if series.Metric[label[1]] == "" {
						t.Errorf("%q: a series has no label %s for its legend", p.Title, label[1])
					}
				}
			}
			if numbers == 0 && !strings.Contains(expr, "linkstream_api_domain_lookups_total") {
				t.Errorf("%q: nothing comes back for %s", p.Title, strings.TrimSpace(expr))
			}
		}
	}
	t.Logf("%d queries return numbers", queries)
}
