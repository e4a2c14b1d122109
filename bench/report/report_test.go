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
