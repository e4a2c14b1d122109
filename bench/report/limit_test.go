package report_test

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"

	"linkstream/bench/report"
	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

// limits parses flags.
func limits(t *testing.T, args ...string) *report.Limits {
	t.Helper()
	l := new(report.Limits)
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	l.RegisterFlags(fs)
	testkit.Must(t, fs.Parse(args))
	return l
}

// wantBeyond requires an error with the exit code 2 that contains the text, or no error if it is empty.
func wantBeyond(t *testing.T, err error, text string) {
	t.Helper()
	if text == "" {
		testkit.Must(t, err)
		return
	}
	exit, ok := errors.AsType[*service.ExitError](err)
	if !ok || exit.Code != 2 || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want exit code 2 and %q", err, text)
	}
}

func TestLimits(t *testing.T) {
	const metric = "CPU per redirect: edge, spooling / bare fasthttp"
	r := of(metric, report.Lower, 1, 1.2, 9)
	for _, c := range []struct{ name, flag, want string }{
		{"a median below the upper limit passes", "-fail-above=" + metric + "=1.3", ""},
		{"a median at the upper limit passes", "-fail-above=" + metric + "=1.2", ""},
		{"a median above the upper limit fails", "-fail-above=" + metric + "=1.1", metric + " is 1.20 µs, beyond the limit 1.1"},
		{"a median above the lower limit passes", "-fail-below=" + metric + "=1.1", ""},
		{"a median below the lower limit fails", "-fail-below=" + metric + "=1.3", metric + " is 1.20 µs, beyond the limit 1.3"},
		{"a missing metric fails", "-fail-above=CPU=100", `"CPU": the report does not have this metric`},
	} {
		t.Run(c.name, func(t *testing.T) { wantBeyond(t, limits(t, c.flag).Check(r), c.want) })
	}
	t.Run("every limit is reported", func(t *testing.T) {
		err := limits(t, "-fail-above="+metric+"=1", "-fail-above=a=1", "-fail-below=b=1").Check(r)
		for _, want := range []string{metric, `"a"`, `"b"`} {
			wantBeyond(t, err, want)
		}
	})
	t.Run("a malformed limit is refused", func(t *testing.T) {
		for _, arg := range []string{"CPU", "=1", "CPU=many"} {
			fs := flag.NewFlagSet("test", flag.ContinueOnError)
			fs.SetOutput(io.Discard)
			new(report.Limits).RegisterFlags(fs)
			if err := fs.Parse([]string{"-fail-above", arg}); err == nil {
				t.Errorf("%q: no error", arg)
			}
		}
	})
}

func TestLimitsOfChanges(t *testing.T) {
	low, high := []float64{10, 10, 10, 10, 10}, []float64{11, 11, 11, 11, 11}
	for _, c := range []struct {
		name     string
		flag     string
		better   report.Direction
		old, new []float64
		want     string
	}{
		{"a smaller worsening passes", "-fail-worse=20", report.Lower, low, high, ""},
		{"a greater worsening fails", "-fail-worse=5", report.Lower, low, high, "CPU is worse by 10.0 %, beyond the limit 5 %"},
		{"a loss where higher is better fails", "-fail-worse=5", report.Higher, high, low, "CPU is worse by 9.1 %"},
		{"an improvement passes", "-fail-worse=5", report.Lower, high, low, ""},
		{"noise passes", "-fail-worse=5", report.Lower, low[:2], high[:2], ""},
		{"without a limit everything passes", "-fail-worse=0", report.Lower, low, high, ""},
		{"a worsening from zero fails", "-fail-worse=5", report.Lower, make([]float64, 5), high, "CPU was 0, and is worse now"},
	} {
		t.Run(c.name, func(t *testing.T) {
			changes, err := report.Compare(of("CPU", c.better, c.old...), of("CPU", c.better, c.new...))
			testkit.Must(t, err)
			wantBeyond(t, limits(t, c.flag).CheckChanges(changes), c.want)
		})
	}
	for name, fails := range map[string]bool{
		"redirect: CPU per redirect: edge, spooling": true, "CPU per redirect: edge, spooling / bare fasthttp": true,
		"CPU per redirect: bare, on edge/eventloop": true, "CPU per redirect: bare fasthttp, full TLS handshake": false,
		"redirect: resident memory: nginx, 2 workers": false, "CPU per redirect: nginx / bare fasthttp": false,
	} {
		t.Run("fail, unless they are those of others: "+name, func(t *testing.T) {
			changes, err := report.Compare(of(name, report.Lower, low...), of(name, report.Lower, high...))
			testkit.Must(t, err)
			want := ""
			if fails {
				want = name + " is worse by 10.0 %"
			}
			wantBeyond(t, limits(t, "-fail-worse=5").CheckChanges(changes), want)
		})
	}
}
