package report_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/report"
	"linkstream/schema/testkit"
)

// sample returns a report with something of everything.
func sample(t *testing.T) *report.Report {
	t.Helper()
	r := &report.Report{Scenario: "redirect", Command: "go run ./bench redirect -start", Seconds: 12.5,
		Began:   time.Date(2026, time.November, 21, 9, 30, 0, 0, time.UTC),
		Machine: proc.Machine{CPU: "Some CPU <1>", Cores: 2, Kernel: "linux 6.1", Go: "go1.26"},
		Checks:  []report.Check{{Name: "clicks", Want: 7, Got: 7}}}
	for _, v := range []float64{8, 9, 7.5, 12, 8.5} {
		r.Add("CPU per redirect", "µs", report.Lower, v)
		r.Add("redirects per second", "1/s", report.Higher, 100_000/v)
	}
	h := load.NewHistogram()
	for i := range int64(10_000) {
		if err := h.RecordValue(i * int64(time.Microsecond)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.AddLatency("standalone & bare, 100/s", h); err != nil {
		t.Fatal(err)
	}
	r.Series = []report.Series{
		{Chart: "CPU", Name: "edge", Unit: "cores", Seconds: []float64{0, 1, 2}, Values: []float64{0, 0.5, 1}},
		{Chart: "CPU", Name: "broker", Unit: "cores", Seconds: []float64{0, 1, 2}, Values: []float64{0, 0, 0}},
		{Chart: "memory", Name: "edge", Unit: "MiB", Seconds: []float64{0, 1, 2}, Values: []float64{12000, 13000, 14000}},
		{Chart: "memory", Name: "short-lived", Unit: "MiB", Seconds: []float64{1}, Values: []float64{1}},
	}
	r.Growth = []report.Curve{
		{Chart: "page latency p50", Name: "overview", Unit: "ms", Of: "links", Sizes: []float64{10, 1e6}, Values: []float64{4, 5}},
		{Chart: "page latency p50", Name: "search", Unit: "ms", Of: "links", Sizes: []float64{10, 1e6}, Values: []float64{0, 4000}},
		{Chart: "of one size", Name: "overview", Unit: "<b>", Of: "<i>", Sizes: []float64{10}, Values: []float64{4}},
	}
	return r
}

func TestReport(t *testing.T) {
	t.Run("Load returns what Save wrote", func(t *testing.T) {
		want, path := sample(t), filepath.Join(t.TempDir(), "report.json")
		if err := want.Save(path); err != nil {
			t.Fatal(err)
		}
		got, err := report.Load(path)
		testkit.Must(t, err)
		testkit.Equal(t, "report", got, want)
	})
	t.Run("names each failed check", func(t *testing.T) {
		r := sample(t)
		if err := r.Failed(); err != nil {
			t.Errorf("error %v", err)
		}
		r.Checks = append(r.Checks, report.Check{Name: "links", Want: 3, Got: 2})
		if err := r.Failed(); err == nil || !strings.Contains(err.Error(), "links: got 2, want 3") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("the median of an even number of rounds is the mean of the two middle ones", func(t *testing.T) {
		for _, c := range []struct {
			samples []float64
			want    float64
		}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{9, 1, 2, 4}, 3}} {
			if got := (report.Metric{Samples: c.samples}).Median(); got != c.want {
				t.Errorf("%v: got %v, want %v", c.samples, got, c.want)
			}
		}
	})
}

func TestWriteTable(t *testing.T) {
	r := sample(t)
	r.Checks = append(r.Checks, report.Check{Name: "links", Want: 3, Got: 2})
	var out bytes.Buffer
	if err := r.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"go run ./bench redirect -start", "Some CPU <1>, 2 cores, linux 6.1, go1.26",
		"8.50  7.50   12.0       5  CPU per redirect (µs)", "11765  8333  13333       5  redirects per second (1/s)",
		"ok      clicks: 7 of 7", "FAILED  links: 2 of 3",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestPage(t *testing.T) {
	page := func(t *testing.T, r *report.Report) string {
		t.Helper()
		page, err := r.Page()
		if err != nil {
			t.Fatal(err)
		}
		return string(page)
	}
	t.Run("shows every metric, check and chart", func(t *testing.T) {
		got := page(t, sample(t))
		for _, want := range []string{"Some CPU &lt;1&gt;", "CPU per redirect", "redirects per second", "8.50", "7 of 7", "99.9%",
			"standalone &amp; bare, 100/s", "CPU, cores", "memory, MiB", "growth of page latency p50", ">1M links<", ">10 links<", "10000 ms",
			"short-lived", "of one size"} {
			if found := strings.Contains(got, want); found != (want != "short-lived" && want != "of one size") {
				t.Errorf("%q found: %v", want, found)
			}
		}
		if n := strings.Count(got, "<figure>"); n != 4 {
			t.Errorf("%d charts", n)
		}
	})
	t.Run("shows labels of a report as text", func(t *testing.T) {
		r := sample(t)
		r.Growth = []report.Curve{{Chart: "<u>", Name: "<u>", Unit: "<u>", Of: "<u>", Sizes: []float64{1, 2}, Values: []float64{1, 2}}}
		if strings.Contains(page(t, r), "<u>") {
			t.Error("a label is an element")
		}
	})
	t.Run("refers to no other file", func(t *testing.T) {
		for _, other := range []string{"<script", "<link", "<img", "src=", "@import"} {
			if strings.Contains(page(t, sample(t)), other) {
				t.Errorf("it has %q", other)
			}
		}
	})
	t.Run("charts are well-formed", func(t *testing.T) {
		rest := page(t, sample(t))
		for {
			_, found, ok := strings.Cut(rest, "<svg xmlns")
			if !ok {
				break
			}
			svg, after, _ := strings.Cut(found, "</svg>")
			for dec := xml.NewDecoder(strings.NewReader("<svg xmlns" + svg + "</svg>")); ; {
				if _, err := dec.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
				t.Error("a chart has points that are no numbers")
			}
			rest = after
		}
	})
	t.Run("an empty report has no charts", func(t *testing.T) {
		if got := page(t, new(report.Report)); strings.Contains(got, "<figure>") {
			t.Error("it has charts")
		}
	})
}

func TestRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := report.NewRecorder(time.Second)
		count, dead := 0.0, new(atomic.Bool)
		r.Rate("throughput", "clicks", "1/s", func() (float64, bool) { count += 50; return count, true })
		r.Gauge("memory", "edge", "MiB", func() (float64, bool) { return 7, !dead.Load() })
		r.Gauge("memory", "never", "MiB", func() (float64, bool) { return 0, false })
		go r.Run(t.Context())
		time.Sleep(3500 * time.Millisecond)
		dead.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		want := []report.Series{
			{Chart: "throughput", Name: "clicks", Unit: "1/s", Seconds: []float64{2, 3, 4}, Values: []float64{50, 50, 50}},
			{Chart: "memory", Name: "edge", Unit: "MiB", Seconds: []float64{1, 2, 3}, Values: []float64{7, 7, 7}},
		}
		testkit.Equal(t, "series", r.Series(), want)
	})
}
