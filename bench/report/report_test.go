package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
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

func TestReport(t *testing.T) {
	t.Run("Load returns what Save wrote", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "report.json")
		testkit.Must(t, sample(1).Save(path))
		loaded, err := report.Load(path)
		testkit.Must(t, err)
		testkit.Equal(t, "report", loaded, sample(1))
	})
	t.Run("names each failed check", func(t *testing.T) {
		r := sample(1)
		testkit.Must(t, r.Failed())
		r.Scenarios[0].Checks = append(r.Scenarios[0].Checks, report.Check{Name: "links", Want: 7, Got: 8})
		if err := r.Failed(); err == nil || err.Error() != "redirect: links: got 8, want 7" {
			t.Errorf("error %v", err)
		}
	})
	t.Run("the median of an even number of rounds is the mean of the two middle ones", func(t *testing.T) {
		testkit.Equal(t, "median", report.Metric{Samples: []float64{4, 1, 3, 2}}.Median(), 2.5)
		testkit.Equal(t, "median without rounds", report.Metric{}.Median(), 0)
	})
	t.Run("points end where no sample is above them", func(t *testing.T) {
		points := sample(1).Scenarios[0].Latencies[0].Points
		first, last := points[0], points[len(points)-1]
		if first[0] != 0 || math.Abs(first[1]-1) > 0.01 || last[0] != 99.9 || math.Abs(last[1]-999) > 1 {
			t.Errorf("from %v to %v", first, last)
		}
		testkit.Equal(t, "points of nothing", len(report.Points(hdrhistogram.New(1, 100, 1))), 0)
	})
}

func text(t *testing.T, reports ...*report.Report) string {
	t.Helper()
	var out strings.Builder
	testkit.Must(t, report.WriteText(&out, reports...))
	return out.String()
}

func TestText(t *testing.T) {
	t.Run("has the median and the range of each metric", func(t *testing.T) {
		if got := text(t, sample(1)); !regexp.MustCompile(
			`(?m)^ +21\.0 +20\.0 to 22\.0 +CPU per redirect: edge, spooling \(µs\)$`).MatchString(got) {
			t.Error(got)
		}
	})
	t.Run("shows two reports side by side", func(t *testing.T) {
		if got := text(t, sample(1), sample(2)); !regexp.MustCompile(
			`(?m)^ +21\.0 .* 42\.0 .*\+100\.0 % +CPU per redirect: edge, spooling`).MatchString(got) {
			t.Error(got)
		}
	})
	t.Run("tells whether counts are exact", func(t *testing.T) {
		r := sample(1)
		if got := text(t, r); !strings.Contains(got, "All 1 counts are exact.") {
			t.Error(got)
		}
		r.Scenarios[0].Checks[0].Got++
		if got := text(t, r); !strings.Contains(got, "redirect: clicks: got 6, want 5\nCounts are WRONG.") {
			t.Error(got)
		}
	})
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

func TestPage(t *testing.T) {
	one, two := page(t, sample(1)), page(t, sample(1), sample(2))
	t.Run("draws bars to one scale, then curves, then numbers, then folded checks", func(t *testing.T) {
		last := -1
		for _, want := range []string{`width: 95.45%"></b><u style="left: 90.91%; width: 9.09%"`, `<polyline points="0.00,`,
			"<h3>Numbers</h3>", "<td>edge, spooling / bare fasthttp", "<details><summary>All 1 counts are exact.",
			"redirect: clicks: 5 of 5"} {
			at := strings.Index(one, want)
			if at <= last {
				t.Errorf("%q is at %d, after %d, in\n%s", want, at, last, one)
			}
			last = at
		}
	})
	t.Run("opens failed checks", func(t *testing.T) {
		r := sample(1)
		r.Scenarios[0].Checks[0].Got++
		if got := page(t, r); !strings.Contains(got, "<details open>") ||
			!strings.Contains(got, `class="bad">redirect: clicks: 6 of 5`) {
			t.Error(got)
		}
	})
	t.Run("shows two reports side by side", func(t *testing.T) {
		for want, count := range map[string]int{`class="side1"`: 2, "<polyline": 2, "stroke-dasharray": 1,
			`class="n clear">&#43;100.0 %`: 3} {
			if got := strings.Count(two, want); got != count {
				t.Errorf("%q %d times, want %d", want, got, count)
			}
		}
	})
	t.Run("shows a scenario of one report only", func(t *testing.T) {
		other := sample(1)
		other.Scenarios[0].Name = "cold"
		if got := page(t, sample(1), other); !strings.Contains(got, "<h2>redirect</h2>") ||
			!strings.Contains(got, "<h2>cold</h2>") {
			t.Error(got)
		}
	})
	t.Run("shows text as text and refers to no other file", func(t *testing.T) {
		if strings.Contains(two, "redirects <b>") ||
			regexp.MustCompile(`<script|\s(src|href)=|url\(|@import`).MatchString(two) {
			t.Error(two)
		}
	})
	t.Run("plots are well-formed", func(t *testing.T) {
		for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(two, -1) {
			decoder := xml.NewDecoder(strings.NewReader(svg))
			for {
				if _, err := decoder.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%v in %s", err, svg)
				}
			}
		}
		if strings.Contains(two, "NaN") || strings.Contains(two, "ZgotmplZ") {
			t.Error(two)
		}
	})
	t.Run("an empty report has no plots", func(t *testing.T) {
		if got := page(t, &report.Report{Scenarios: []*report.Scenario{{Name: "redirect"}}}); strings.Contains(got, "<svg") {
			t.Error(got)
		}
	})
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
