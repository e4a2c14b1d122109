package report_test

import (
	"strings"
	"testing"

	"linkstream/bench/load"
	"linkstream/bench/report"
	"linkstream/schema/testkit"
)

func TestComparePage(t *testing.T) {
	page := func(t *testing.T, old, new *report.Report) string {
		t.Helper()
		changes, err := report.Compare(old, new)
		testkit.Must(t, err)
		page, err := report.ComparePage(old, new, changes)
		testkit.Must(t, err)
		return string(page)
	}
	t.Run("shows the medians, the change and the verdict of each metric", func(t *testing.T) {
		got := page(t, of("CPU", report.Lower, 10, 11, 12, 13, 14), of("CPU", report.Lower, 5, 6, 7, 8, 9))
		for _, want := range []string{"<td>CPU<", `<td class="n">12.0<`, `<td class="n">7.00<`, "-41.7 %", `<td class="better">better<`} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in\n%s", want, got)
			}
		}
		if n := strings.Count(got, "<circle"); n != 10 {
			t.Errorf("%d dots, want one per round", n)
		}
	})
	t.Run("shows metrics of one report", func(t *testing.T) {
		got := page(t, of("gone", report.Lower, 1), of("added", report.Lower, 2))
		for _, want := range []string{"<td>gone<", "<td>added<", "not in both"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in\n%s", want, got)
			}
		}
	})
	t.Run("draws latencies of both reports although their rates differ", func(t *testing.T) {
		old, new := of("CPU", report.Lower, 1), of("CPU", report.Lower, 1)
		h := load.NewHistogram()
		testkit.Must(t, h.RecordValue(1e6))
		testkit.Must(t, old.AddLatency("edge, shipping, 100/s", h))
		testkit.Must(t, new.AddLatency("edge, shipping, 200/s", h))
		testkit.Must(t, new.AddLatency("nginx, 200/s", h))
		got := page(t, old, new)
		if n := strings.Count(got, "<figure>"); n != 1 {
			t.Errorf("%d charts, want 1", n)
		}
		for _, want := range []string{"edge, shipping: latency by percentile", "old: edge, shipping, 100/s", "new: edge, shipping, 200/s"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in\n%s", want, got)
			}
		}
	})
	t.Run("warns of what makes the comparison doubtful", func(t *testing.T) {
		old, new := of("CPU", report.Lower, 1), of("CPU", report.Lower, 1)
		if got := page(t, old, new); strings.Contains(got, `<p class="failed">`) {
			t.Errorf("it warns:\n%s", got)
		}
		new.Machine.Cores, new.Command = 64, "go run ./bench redirect -links=1"
		old.Checks = []report.Check{{Name: "clicks", Want: 2, Got: 1}}
		got := page(t, old, new)
		for _, want := range []string{"The machines differ", "The commands differ", "Checks of the old report failed: clicks: got 1, want 2"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in\n%s", want, got)
			}
		}
	})
	t.Run("refers to no other file", func(t *testing.T) {
		got := page(t, sample(t), sample(t))
		for _, other := range []string{"<script", "<link", "<img", "src=", "@import", "NaN", "Inf"} {
			if strings.Contains(got, other) {
				t.Errorf("it has %q", other)
			}
		}
	})
}
