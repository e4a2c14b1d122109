package service_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

func TestMetrics(t *testing.T) {
	ops, _ := startOps(t, service.OpsConfig{})
	a, b := metrics.NewSet(), metrics.NewSet()
	service.Describe(a, "a_total", "Things of a.")
	a.NewCounter(`a_total{kind="x"}`).Set(3)
	a.NewCounter(`a_total{kind="y"}`).Set(4)
	a.NewGauge("told_total", func() float64 { return 5 })
	seconds := service.NewHistograms(b, "b_seconds", "Seconds of b.")
	seconds.With(`route="/x"`).Observe(3 * time.Millisecond)
	seconds.With(`route="/x"`).Observe(5 * time.Millisecond)
	seconds.With(`route="/x"`).Observe(time.Hour)
	seconds.With(`route="/y"`).Observe(0)
	service.NewHistogram(b, "plain_seconds", "Seconds.").Observe(2 * time.Second)
	ops.Add(readyNow, a)
	ops.Add(readyNow, b)
	page := wantOps(t, ops, "/metrics", 200, "")
	for _, part := range []string{
		"\n# HELP a_total Things of a.\n# TYPE a_total counter\na_total{kind=\"x\"} 3\na_total{kind=\"y\"} 4\n",
		"\n# TYPE told_total counter\ntold_total 5\n",
		"\n# HELP b_seconds Seconds of b.\n# TYPE b_seconds histogram\nb_seconds_bucket{route=\"/x\",le=\"5e-06\"} 0\n",
		"\nb_seconds_bucket{route=\"/x\",le=\"0.0025\"} 0\nb_seconds_bucket{route=\"/x\",le=\"0.005\"} 2\n",
		"\nb_seconds_bucket{route=\"/x\",le=\"10\"} 2\nb_seconds_bucket{route=\"/x\",le=\"+Inf\"} 3\n" +
			"b_seconds_sum{route=\"/x\"} 3600.008\nb_seconds_count{route=\"/x\"} 3\nb_seconds_bucket{route=\"/y\",",
		"\nplain_seconds_bucket{le=\"2.5\"} 1\n", "\nplain_seconds_sum 2\nplain_seconds_count 1\n",
	} {
		if !strings.Contains("\n"+page, part) {
			t.Errorf("no %q in\n%s", part, page)
		}
	}
	t.Run("each family appears once, with its type before its samples", func(t *testing.T) {
		seen := map[string]bool{}
		for _, m := range regexp.MustCompile(`(?m)^# (HELP|TYPE) (\S+)`).FindAllStringSubmatch(page, -1) {
			if seen[m[0]] {
				t.Errorf("%s appears twice", m[0])
			}
			seen[m[0]] = true
		}
		for _, m := range regexp.MustCompile(`(?m)^([a-z][a-zA-Z0-9_]*?)(?:_bucket|_sum|_count)?[{ ]`).FindAllStringSubmatch(
			page, -1) {
			whole := strings.TrimRight(m[0], "{ ")
			if !seen["# TYPE "+m[1]] && !seen["# TYPE "+whole] {
				t.Errorf("%s has no type", whole)
			}
		}
	})
}

func TestHistogramDoesNotAllocate(t *testing.T) {
	h := service.NewHistogram(metrics.NewSet(), "x_seconds", "Seconds.")
	testkit.Equal(t, "allocations", testing.AllocsPerRun(100, func() { h.Observe(time.Millisecond) }), 0)
}
