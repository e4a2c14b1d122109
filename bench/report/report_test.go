package report_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"linkstream/bench/report"
	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

// sample returns a report with two contenders, whose figures grow with scale.
func sample(scale float64) *report.Report {
	s := &report.Scenario{Name: "redirect", Summary: "redirects <b>"}
	for round := range 3 {
		s.Add("CPU per redirect", "bare fasthttp", "µs", scale*float64(10+round))
		s.Add("CPU per redirect", "edge, spooling", "µs", scale*float64(20+round))
		s.Add("CPU per redirect", "edge, spooling / bare fasthttp", "ratio", scale*2)
	}
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	for i := range int64(1000) {
		_ = h.RecordValue(int64(scale * float64((i+1)*1e6)))
	}
	s.AddLatency("redirect", "edge, spooling", 2000, h)
	s.Checks = []report.Check{{Name: "clicks", Want: 5, Got: 5}}
	return &report.Report{Command: "go run ./bench redirect", Began: time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC),
		Scenarios: []*report.Scenario{s}}
}

func text(t *testing.T, reports ...*report.Report) string {
	t.Helper()
	var out strings.Builder
	testkit.Must(t, report.WriteText(&out, reports...))
	return out.String()
}

func TestBounds(t *testing.T) {
	within, beyond := report.Bound{Name: "a", Measured: 1, Limit: 1}, report.Bound{Name: "b", Measured: 2, Limit: 1}
	few := report.Bound{Name: "c", Measured: 1, Limit: 2, Least: true}
	for _, c := range []struct {
		name   string
		bounds []report.Bound
		code   int
		says   string
	}{
		{"a value at its limit is within", []report.Bound{within, {Name: "d", Measured: 3, Limit: 2, Least: true}}, 0,
			"The build and the machine are healthy."},
		{"a build beyond a limit", []report.Bound{within, beyond}, 2, "the build is NOT"},
		{"a build below a least value", []report.Bound{few}, 2, "the build is NOT"},
		{"a slow machine with a good build", []report.Bound{within, {Machine: true, Name: "m", Measured: 2, Limit: 1}}, 0,
			"machine is slow or busy"},
		{"a slow machine cannot judge", []report.Bound{beyond, {Machine: true, Name: "m", Measured: 2, Limit: 1}}, 2,
			"repeat the run"},
		{"a quiet machine, which nobody asked to judge", []report.Bound{{Machine: true, Name: "m", Measured: 1, Limit: 1}}, 0,
			"The machine was quiet."},
		{"a busy one", []report.Bound{{Machine: true, Name: "m", Measured: 2, Limit: 1}}, 0, "The machine was BUSY"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := sample(1)
			r.Bounds = c.bounds
			code := 0
			if exit, ok := errors.AsType[*service.ExitError](r.Unhealthy()); ok {
				code = exit.Code
			}
			testkit.Equal(t, "exit code", code, c.code)
			if got := text(t, r); !strings.Contains(got, c.says) {
				t.Error(got)
			}
		})
	}
}

// TestComparison compares reports with one more or less paired ratio.
func TestComparison(t *testing.T) {
	with := func(change func(*report.Report)) *report.Report {
		r := sample(1.5)
		change(r)
		return r
	}
	none := func(*report.Report) {}
	for _, c := range []struct {
		name  string
		after *report.Report
		limit float64
		says  string // in the text
		fails string // in the error of -fail-above
	}{
		{"a clear change", with(none), 0.1, "clear +50.0 %", "+50.0 %"},
		{"within the limit", with(none), 0.6, "clear +50.0 %", ""},
		{"overlapping rounds", with(func(r *report.Report) {
			r.Scenarios[0].Metrics[2].Samples = []float64{2, 3, 4}
		}), 0.1, "      +50.0 %  edge, spooling / bare", ""},
		{"too few rounds", with(func(r *report.Report) { r.Scenarios[0].Metrics[2].Samples = []float64{3, 3} }), 0.1,
			"+50.0 %", ""},
		{"other rounds and rates", with(func(r *report.Report) { r.Command += " -rounds=9 -rates=1k" }), 0.1, "clear +50.0 %",
			"+50.0 %"},
		{"-quick", with(func(r *report.Report) { r.Command += " -quick" }), 0.1, "NOT COMPARED: flags: none / -quick",
			"-quick"},
		{"another load", with(func(r *report.Report) { r.Command += " -conns=8" }), 0.1, "NOT COMPARED: flags", "-conns=8"},
		{"other engines", with(func(r *report.Report) { r.Engines = []string{"Postgres 17"} }), 0.1,
			"NOT COMPARED: engines: none / Postgres 17", "engines"},
		{"another machine", with(func(r *report.Report) { r.Machine.Cores = 64 }), 0.1, "NOT COMPARED: machines", "64 cores"},
		{"nothing in common", with(func(r *report.Report) { r.Scenarios[0].Name = "other" }), 0.1, "other: ", "no ratio"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strings.ReplaceAll(text(t, sample(1), c.after), "CPU per redirect: ", "")
			if !strings.Contains(got, c.says) ||
				strings.HasPrefix(c.says, "NOT") && strings.Contains(got, "50.0 %") {
				t.Error(got)
			}
			err := report.Worse(sample(1), c.after, c.limit)
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v, want %q", err, c.fails)
			}
		})
	}
}

// TestRates tests that latencies at different rates are shown with their rates and not compared.
func TestRates(t *testing.T) {
	at := func(rate, p50, achieved float64) *report.Report {
		r := sample(1)
		s := r.Scenarios[0]
		s.Latencies = nil
		for range 3 {
			s.AddAt(rate, report.AchievedMetric("redirect"), "edge", "1/s", achieved)
			s.AddAt(rate, report.LatencyMetric("redirect", 50), "edge", "ms", p50)
		}
		s.AddLatency("redirect", "edge", rate, hdrhistogram.New(1, int64(time.Minute), 3))
		return r
	}
	got := text(t, at(9320, 1, 9320), at(17690, 30, 17690))
	for _, want := range []string{"redirect latency p50 at 9320/s: edge", "redirect latency p50 at 17690/s: edge"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "2900") || strings.Contains(got, "SATURATED") {
		t.Error(got)
	}
	slow := at(60_000, 1800, 25_000)
	slow.Scenarios[0].Answer = []string{"edge: 25000 redirects/s"}
	if !strings.HasPrefix(text(t, slow), "redirect: edge: 25000 redirects/s\n") ||
		!strings.Contains(page(t, slow), "</h1>\n<p><strong>redirect: edge: 25000 redirects/s</strong>") {
		t.Error("the answer does not stand first")
	}
	if got := text(t, slow); !strings.Contains(got, "SATURATED at 60000/s: edge") || !strings.Contains(got, "25000") ||
		!strings.Contains(got, "are exact") {
		t.Error(got)
	}
	if got := page(t, slow); !strings.Contains(got, "SATURATED") {
		t.Error(got)
	}
}

func page(t *testing.T, reports ...*report.Report) string {
	t.Helper()
	content, err := report.Page(reports...)
	testkit.Must(t, err)
	return string(content)
}

// TestResults reads the recorded reports.
func TestResults(t *testing.T) {
	paths, err := filepath.Glob("../results/*.json")
	testkit.Must(t, err)
	if len(paths) == 0 {
		t.Error("no results")
	}
	for _, path := range paths {
		r, err := report.Load(path)
		testkit.Must(t, err)
		testkit.Must(t, r.Failed())
		if info, err := os.Stat(path); err != nil || info.Size() > 30<<10 {
			t.Errorf("%s: %d bytes, error %v", path, info.Size(), err)
		}
		if got := page(t, r); r.Commit == "" || !strings.Contains(got, `class="bars"`) || strings.Contains(got, "NaN") {
			t.Errorf("%s: commit %q, page of %d bytes", path, r.Commit, len(got))
		}
	}
}
