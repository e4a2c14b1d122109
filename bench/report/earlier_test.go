package report_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"linkstream/bench/report"
	"linkstream/schema/testkit"
)

// earlierName matches the names that reports no longer use.
var earlierName = regexp.MustCompile(`s/s at most|^CPU of|^latency p|^from the last|for each`)

func TestEarlierReports(t *testing.T) {
	paths, err := filepath.Glob("../results/*.json")
	testkit.Must(t, err)
	if len(paths) < 10 {
		t.Fatalf("only %d reports", len(paths))
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			r, err := report.Load(path)
			testkit.Must(t, err)
			testkit.Must(t, r.Failed())
			for _, m := range r.Metrics {
				if earlierName.MatchString(m.Name) {
					t.Errorf("metric %q has an earlier name", m.Name)
				}
			}
		})
	}
	t.Run("their metrics have the names of new reports", func(t *testing.T) {
		r, err := report.Load("../results/2026-11-21-redirect-embedded.json")
		testkit.Must(t, err)
		for _, name := range []string{
			"redirects per second, closed loop: edge, spooling", "CPU per redirect: edge, shipping (edge)",
			"CPU per redirect: edge, spooling / bare fasthttp", "CPU per redirect, open loop: standalone / bare fasthttp",
			"redirect latency p99.9, open loop: standalone", "time to drain after the last redirect: standalone",
		} {
			if len(r.Metric(name).Samples) != 9 {
				t.Errorf("%q has %d rounds, want 9", name, len(r.Metric(name).Samples))
			}
		}
	})
}
