//go:build deploy

package outside_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

// The alerts and the dashboard are tested against each other and the manual, by promtool with made-up series, and
// against programs that a real Prometheus scrapes while they suffer real faults.

const watchPage = "../../manual/watch.md"

// alertRule is what the tests read of an alert.
type alertRule struct{ name, severity, summary, runbook string }

var (
	severityForm = regexp.MustCompile(`(?m)^        labels: \{severity: (\w+)\}$`)
	summaryForm  = regexp.MustCompile(`(?m)^          summary: "(.+)"$`)
	runbookForm  = regexp.MustCompile(`(?m)^          runbook_url: (\S+)$`)
)

// readRules returns the alerts in alerts.yaml, which promtool has to find valid.
func readRules(t *testing.T) (rules []alertRule) {
	t.Helper()
	content, err := os.ReadFile("../../prometheus/alerts.yaml")
	testkit.Must(t, err)
	for i, text := range strings.Split(string(content), "\n      - alert: ") {
		if i == 0 {
			continue
		}
		name, rest, _ := strings.Cut(text, "\n")
		field := func(form *regexp.Regexp) string {
			found := form.FindAllStringSubmatch(rest, -1)
			if len(found) != 1 {
				t.Errorf("%s has %d times %s", name, len(found), form)
				return ""
			}
			return found[0][1]
		}
		rules = append(rules, alertRule{name, field(severityForm), field(summaryForm), field(runbookForm)})
	}
	if len(rules) == 0 {
		t.Fatal("there are no alerts")
	}
	return rules
}

// prometheusProgram returns the path of a program of Debian's package of Prometheus, which it unpacks first.
func prometheusProgram(t *testing.T, name string) string {
	t.Helper()
	dir, err := testengines.DebianPackages(t.Context(), logger(t), "prometheus")
	testkit.Must(t, err)
	return filepath.Join(dir, "usr/bin", name)
}

func TestAlerts(t *testing.T) {
	readme, err := os.ReadFile(watchPage)
	testkit.Must(t, err)
	_, section, _ := strings.Cut(string(readme), "\n## Alerts\n")
	section, _, _ = strings.Cut(section, "\n## ")
	unit, err := os.ReadFile("testdata/prometheus/alerts_test.yaml")
	testkit.Must(t, err)
	known := map[string]bool{}
	for _, r := range readRules(t) {
		known[r.name] = true
		if r.severity != "critical" && r.severity != "warning" {
			t.Errorf("%s has the severity %q", r.name, r.severity)
		}
		testkit.Equal(t, "runbook of "+r.name, r.runbook, "file:///usr/share/doc/linkstream/manual/watch.md#"+
			strings.ToLower(r.name))
		_, entry, found := strings.Cut(section, "\n#### "+r.name+"\n")
		if entry, _, _ = strings.Cut(entry, "\n#### "); !found || len(entry) < 100 {
			t.Errorf("the manual has no entry about %s", r.name)
		}
		if !strings.Contains(string(unit), "alertname: "+r.name+"\n") {
			t.Errorf("no unit test of %s", r.name)
		}
	}
	for line := range strings.Lines(section) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "#### "); ok && !known[name] {
			t.Errorf("the manual has an entry about %s, which does not exist", name)
		}
	}
	promtool := prometheusProgram(t, "promtool")
	t.Run("promtool finds nothing", func(t *testing.T) {
		run(t, promtool, "check", "rules", "--lint-fatal", "../../prometheus/alerts.yaml")
		run(t, promtool, "check", "config", "../../prometheus/prometheus.yaml")
	})
	t.Run("fire for series of a fault, and only then",
		func(t *testing.T) { run(t, promtool, "test", "rules", "testdata/prometheus/alerts_test.yaml") })
}
