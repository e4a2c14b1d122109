package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/report"
	"linkstream/schema/testkit"
)

// generated returns the report of a generator that began at the given second and got answers with the given latencies,
// one round per latency.
func generated(t *testing.T, began int, rates []float64, latencies ...time.Duration) *report.Report {
	t.Helper()
	r := &report.Report{Scenario: "redirect", Command: "go run ./bench redirect", Seconds: 10,
		Began: time.Date(2026, time.November, 21, 9, 30, began, 0, time.UTC), Machine: proc.Machine{CPU: "a", Cores: 2},
		Checks: []report.Check{{Name: "clicks", Want: 7, Got: 7}}}
	for _, rate := range rates {
		r.Add("redirects per second", "1/s", report.Higher, rate)
		r.Add("CPU per redirect", "µs", report.Lower, 10)
	}
	var rounds []*hdrhistogram.Histogram
	for _, latency := range latencies {
		h := load.NewHistogram()
		testkit.Must(t, h.RecordValues(int64(latency), 100))
		rounds = append(rounds, h)
	}
	testkit.Must(t, r.AddOpenLoop("redirect", "running service", 50, rounds))
	return r
}

func TestMerge(t *testing.T) {
	merge := func(t *testing.T, reports ...*report.Report) *report.Report {
		t.Helper()
		r, err := report.Merge(reports)
		testkit.Must(t, err)
		return r
	}
	rates := []float64{100, 200}
	t.Run("rates are added round by round", func(t *testing.T) {
		r := merge(t, generated(t, 0, rates), generated(t, 1, []float64{10, 20, 30}))
		testkit.Equal(t, "rates", r.Metric("redirects per second").Samples, []float64{110, 220})
	})
	t.Run("percentiles are those of the merged histograms", func(t *testing.T) {
		r := merge(t, generated(t, 0, rates, time.Millisecond, time.Millisecond),
			generated(t, 1, rates, 10*time.Millisecond, time.Millisecond, time.Second))
		for name, want := range map[string][]float64{
			"redirect latency p50, open loop: running service":   {1, 1},
			"redirect latency p99.9, open loop: running service": {10, 1},
		} {
			got := r.Metric(name).Samples
			for i := range want {
				if len(got) != len(want) || got[i] < want[i]*0.99 || got[i] > want[i]*1.01 {
					t.Fatalf("%s: %v, want %v", name, got, want)
				}
			}
		}
		if l := r.Latencies[0]; l.Name != "running service, 100/s" || l.Rate != 100 || len(l.Rounds) != 2 {
			t.Errorf("%s at %v/s, %d rounds", l.Name, l.Rate, len(l.Rounds))
		}
	})
	t.Run("rounds that one generator does not have are left out", func(t *testing.T) {
		r := merge(t, generated(t, 0, rates, time.Millisecond, time.Second), generated(t, 1, rates, time.Millisecond))
		if n := len(r.Latencies[0].Rounds); n != 1 {
			t.Errorf("%d rounds, want 1", n)
		}
	})
	t.Run("metrics of one generator are left out", func(t *testing.T) {
		r := merge(t, generated(t, 0, rates), generated(t, 1, rates))
		if m := r.Metric("CPU per redirect"); len(m.Samples) > 0 {
			t.Errorf("CPU per redirect: %v", m.Samples)
		}
	})
	t.Run("every check is kept", func(t *testing.T) {
		wrong := generated(t, 1, rates)
		wrong.Checks[0].Got = 8
		r := merge(t, generated(t, 0, rates), wrong)
		if err := r.Failed(); err == nil || !strings.Contains(err.Error(), "generator 2: clicks: got 8, want 7") {
			t.Errorf("error %v", err)
		}
		if len(r.Checks) != 2 {
			t.Errorf("checks %+v", r.Checks)
		}
	})
	t.Run("the time is that of all generators together", func(t *testing.T) {
		for _, order := range [][2]int{{0, 4}, {4, 0}} {
			r := merge(t, generated(t, order[0], rates), generated(t, order[1], rates))
			if r.Seconds != 6 || r.Began.Second() != 4 {
				t.Errorf("%v: %v seconds from %v", order, r.Seconds, r.Began)
			}
		}
	})
	t.Run("different machines are named", func(t *testing.T) {
		other := generated(t, 1, rates)
		other.Machine.CPU = "b"
		if r := merge(t, generated(t, 0, rates), other); r.Machine.CPU != "different machines: a, b" {
			t.Errorf("machine %+v", r.Machine)
		}
		if r := merge(t, generated(t, 0, rates), generated(t, 1, rates)); r.Machine.CPU != "a" {
			t.Errorf("machine %+v", r.Machine)
		}
	})
	t.Run("the result can be saved, loaded and shown", func(t *testing.T) {
		r := merge(t, generated(t, 0, rates, time.Millisecond), generated(t, 1, rates, time.Millisecond))
		path := t.TempDir() + "/merged.json"
		testkit.Must(t, r.Save(path))
		loaded, err := report.Load(path)
		testkit.Must(t, err)
		testkit.Equal(t, "report", loaded, r)
		_, err = loaded.Page()
		testkit.Must(t, err)
	})
	late, other := generated(t, 20, rates), generated(t, 0, rates)
	other.Scenario = "links"
	for name, c := range map[string]struct {
		reports []*report.Report
		want    string
	}{
		"one report":                        {[]*report.Report{late}, "two or more"},
		"generators one after the other":    {[]*report.Report{generated(t, 0, rates), late}, "at the same time"},
		"generators of different scenarios": {[]*report.Report{generated(t, 0, rates), other}, `"links"`},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			if _, err := report.Merge(c.reports); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}
