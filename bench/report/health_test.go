package report_test

import (
	"bytes"
	"strings"
	"testing"

	"linkstream/bench/report"
	"linkstream/schema/testkit"
)

func TestHealth(t *testing.T) {
	upper := func(s report.Subject, measured float64) report.Health {
		return report.Health{Subject: s, Name: "CPU per redirect", Unit: "µs", Measured: measured, Bound: 10}
	}
	lower := func(measured float64) report.Health {
		return report.Health{Subject: report.Machine, Name: "redirects per second", Unit: "1/s", Measured: measured, Bound: 10, Below: true}
	}
	t.Run("a metric is healthy up to its bound", func(t *testing.T) {
		for h, want := range map[report.Health]bool{upper(report.Build, 9): true, upper(report.Build, 10): true,
			upper(report.Build, 11): false, lower(9): false, lower(10): true, lower(11): true} {
			if h.OK() != want {
				t.Errorf("%+v: %v, want %v", h, h.OK(), want)
			}
		}
	})
	exact, wrong := report.Check{Name: "clicks", Want: 7, Got: 7}, report.Check{Name: "clicks", Want: 7, Got: 8}
	for _, c := range []struct {
		name      string
		health    []report.Health
		check     report.Check
		summary   string
		unhealthy bool
	}{
		{"all within their bounds", []report.Health{upper(report.Build, 9), lower(11)}, exact,
			"All 1 counts are exact. The build and the machine are healthy.", false},
		{"a slow build", []report.Health{upper(report.Build, 11), lower(11)}, exact, "The machine is healthy, the build is NOT.", true},
		{"a slow machine", []report.Health{upper(report.Build, 9), lower(9)}, exact, "although the machine is slow or busy", false},
		{"a slow build on a slow machine", []report.Health{upper(report.Build, 11), lower(9)}, exact, "to judge the build", true},
		{"wrong counts", []report.Health{upper(report.Build, 9)}, wrong, "Counts are WRONG.", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &report.Report{Health: c.health, Checks: []report.Check{c.check}}
			r.Add("not in the table", "µs", report.Lower, 1)
			var out bytes.Buffer
			testkit.Must(t, r.WriteTable(&out))
			if !strings.Contains(out.String(), c.summary) || strings.Contains(out.String(), "not in the table") {
				t.Errorf("%q is not in\n%s", c.summary, out.String())
			}
			want := ""
			if c.unhealthy {
				want = "CPU per redirect is beyond its bound"
			}
			wantBeyond(t, r.Unhealthy(), want)
		})
	}
	t.Run("the table shows measured value, bound and unit", func(t *testing.T) {
		r := &report.Report{Health: []report.Health{upper(report.Build, 11), lower(11)}}
		var out bytes.Buffer
		testkit.Must(t, r.WriteTable(&out))
		for _, want := range []string{"FAILED      11.0  <= 10  build: CPU per redirect (µs)",
			"    ok      11.0  >= 10  machine: redirects per second (1/s)"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not in\n%s", want, out.String())
			}
		}
	})
}

func TestInclude(t *testing.T) {
	one, r := sample(t), new(report.Report)
	one.Engines = []string{"postgres 15"}
	r.Include(one)
	one.Scenario = "links"
	r.Include(one)
	for _, scenario := range []string{"redirect", "links"} {
		if n := len(r.Metric(scenario + ": CPU per redirect").Samples); n != 5 {
			t.Errorf("%s: %d rounds", scenario, n)
		}
	}
	testkit.Equal(t, "checks", r.Checks, []report.Check{{Name: "redirect: clicks", Want: 7, Got: 7}, {Name: "links: clicks", Want: 7, Got: 7}})
	testkit.Equal(t, "engines", r.Engines, one.Engines)
	if len(r.Latencies) != 2 || r.Latencies[1].Name != "links: standalone & bare, 100/s" {
		t.Errorf("latencies %+v", r.Latencies)
	}
	if len(r.Series) != 8 || r.Series[0].Chart != "redirect: CPU" {
		t.Errorf("series %+v", r.Series)
	}
	_, err := r.Page()
	testkit.Must(t, err)
}
