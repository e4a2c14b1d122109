// Package main_test runs the built program. It tests that each scenario runs and that its checks hold, not how fast
// anything is: one scenario here, the others with the tag nightly.
package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"linkstream/bench/report"
	"linkstream/deploy/test/launch"
	"linkstream/schema/testkit"
)

// patience is for one run on a busy machine.
const patience = 3 * time.Minute

// programs returns the folder of the programs that the embedded scenarios start, built without the race detector, whose
// cost would be measured.
func programs(t *testing.T) string {
	t.Helper()
	launch.Program(t, "standalone")
	return filepath.Dir(launch.Program(t, "edge"))
}

const (
	cpu     = "CPU per redirect"
	perBare = " / bare fasthttp"
)

// bench runs the program.
func bench(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, launch.Program(t, "bench"), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it stops its own children
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	return out.String(), errOut.String(), err
}

// measure runs scenarios with rounds as short as possible and returns the report.
func measure(t *testing.T, args ...string) *report.Report {
	t.Helper()
	dir := t.TempDir()
	path, page := filepath.Join(dir, "report.json"), filepath.Join(dir, "report.html")
	args = append(args, "-programs", programs(t), "-rounds=1", "-round=100ms", "-duration=500ms",
		"-links=200", "-clicks=20000", "-conns=8", "-json", path, "-html", page)
	out, errOut, err := bench(t, args...)
	// Bounds of health mean nothing in a short run together with other tests.
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !(ok && exit.ExitCode() == 2) {
		t.Fatalf("%q: %v\n%s%s", args, err, errOut, out)
	}
	r, err := report.Load(path)
	testkit.Must(t, err)
	testkit.Must(t, r.Failed())
	for _, s := range r.Scenarios {
		if len(s.Checks) == 0 {
			t.Errorf("%s has no checks", s.Name)
		}
		for _, m := range s.Metrics {
			if len(m.Samples) == 0 || m.Samples[0] < 0 || math.IsInf(m.Samples[0], 0) {
				t.Errorf("%s: %s: %v", m.Name, m.Of, m.Samples)
			}
			if !strings.Contains(out, m.Title()+": "+m.Of) {
				t.Errorf("%s: %s is not in the text\n%s", m.Name, m.Of, out)
			}
		}
	}
	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte(`class="bars"`)) {
		t.Errorf("page of %d bytes, error %v", len(html), err)
	}
	return r
}

// wanted is a metric of a scenario.
type wanted struct{ scenario, name, of string }

func wantMetrics(t *testing.T, r *report.Report, all ...wanted) {
	t.Helper()
	for _, w := range all {
		if m := r.Scenario(w.scenario).Metric(w.name, w.of); m.Median() <= 0 {
			t.Errorf("no metric %+v in %+v", w, r.Scenario(w.scenario).Metrics)
		}
	}
}

func TestRedirect(t *testing.T) {
	wantMetrics(t, measure(t, "redirect", "-quick", "-start"), []wanted{
		{"redirect", "redirects per second, closed loop", "standalone"},
		{"redirect", cpu, "edge, spooling" + perBare}, {"redirect", cpu + ", open loop", "standalone" + perBare},
		{"redirect", "redirects per second, open loop", "standalone"}, {"redirect", "resident memory", "edge, spooling"},
		{"redirect", "CPU without load", "standalone"}, {"redirect", "CPU of the load generator for redirects, open loop",
			"standalone"},
	}...)
}

// TestSaturated asks for more than any machine can do.
func TestSaturated(t *testing.T) {
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://example.com/", http.StatusFound)
	}))
	defer peer.Close()
	r := measure(t, "redirect", "-start", "-rates=200,1000k", "-peer", "other="+peer.URL+"/abc")
	s := r.Scenario("redirect")
	for _, of := range []string{"other", "standalone"} {
		if s.Saturated("redirect", of, 200) || !s.Saturated("redirect", of, 1e6) {
			t.Errorf("%s: %v, %v", of, s.At("redirects per second, open loop", of, 200), s.At("redirects per second, open loop",
				of, 1e6))
		}
	}
	testkit.Equal(t, "lines of the answer", len(s.Answer), 3)
}

// TestProbes tests that a peer, a service, a token and a file are tried before anything is started.
func TestProbes(t *testing.T) {
	page := httptest.NewServer(http.NotFoundHandler())
	defer page.Close()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a peer that does not redirect":  {[]string{"-start", "-peer", "mine=" + page.URL + "/a"}, "-peer: mine: "},
		"a peer that is away":            {[]string{"-start", "-peer", "mine=http://127.0.0.1:1/a"}, "-peer: mine: "},
		"an edge that is away":           {[]string{"-token=ls_a", "-edge=http://127.0.0.1:1"}, "-edge: "},
		"an edge that is something else": {[]string{"-token=ls_a", "-edge=" + page.URL}, "-edge: "},
		"a report that cannot be written": {[]string{"-start", "-json=" + filepath.Join(t.TempDir(), "none", "a.json")},
			"no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errOut, err := bench(t, append(c.args, "redirect")...)
			if err == nil || !strings.Contains(errOut, c.want) || strings.Contains(errOut, "starting") {
				t.Errorf("error %v, %q is not in\n%s", err, c.want, errOut)
			}
		})
	}
}

func TestMistypedFlag(t *testing.T) {
	_, errOut, err := bench(t, "redirect", "-ratess=1k")
	if err == nil || strings.Count(errOut, "\n") != 2 || !strings.Contains(errOut, "-ratess") {
		t.Errorf("error %v\n%s", err, errOut)
	}
	if _, errOut, err := bench(t, "-h"); err != nil || !strings.Contains(errOut, "-rates") {
		t.Errorf("error %v\n%s", err, errOut)
	}
}

func TestShow(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i, cpu := range []float64{10, 5} {
		s := &report.Scenario{Name: "redirect"}
		s.Add("CPU per redirect", "edge", "µs", cpu)
		paths = append(paths, filepath.Join(dir, fmt.Sprint(i, ".json")))
		testkit.Must(t, (&report.Report{Scenarios: []*report.Scenario{s}}).Save(paths[i]))
	}
	page := filepath.Join(dir, "page.html")
	out, errOut, err := bench(t, "-html", page, "show", paths[0], paths[1])
	if err != nil || !strings.Contains(out, "-50.0 %  CPU per redirect: edge (µs)") {
		t.Errorf("error %v\n%s%s", err, errOut, out)
	}
	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte("-50.0 %")) {
		t.Errorf("error %v\n%s", err, html)
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no scenario":          {nil, "name a scenario"},
		"an unknown scenario":  {[]string{"redirect", "speed"}, `no scenario "speed"`},
		"attacks on a service": {[]string{"abuse", "-token", "ls_a"}, "-start"},
		"an unknown attack":    {[]string{"abuse", "-start", "-attacks=sign-in,earthquake"}, `"earthquake"`},
		"a peer elsewhere": {[]string{"redirect", "-start", "-peer", "a=http://192.0.2.1:80/b"},
			"-i-own-this-target"},
		"a target elsewhere":       {[]string{"redirect", "-edge", "http://192.0.2.1:80"}, "-i-own-this-target"},
		"a target by name":         {[]string{"redirect", "-api", "http://linkstream.example:80"}, "-i-own-this-target"},
		"a target that is no URL":  {[]string{"redirect", "-api", "127.0.0.1:8081"}, "-api"},
		"a target with TLS":        {[]string{"redirect", "-edge", "https://127.0.0.1:443"}, "-edge"},
		"no token":                 {[]string{"redirect"}, "-token"},
		"too many links":           {[]string{"redirect", "-start", "-links=10000001"}, "-links"},
		"a run without end":        {[]string{"redirect", "-start", "-duration=100h", "-conns=0"}, "-duration"},
		"a rate that is none":      {[]string{"redirect", "-start", "-rates=1k,fast"}, "-rates"},
		"a limit that is none":     {[]string{"redirect", "-start", "-slo=10ms"}, "-slo"},
		"headers of nobody":        {[]string{"redirect", "-start", "-headers=long"}, "-headers"},
		"one report to judge":      {[]string{"show", "-fail-above=10%", "results/redirect-embedded.json"}, "two reports"},
		"no report to show":        {[]string{"show"}, "name one report or two"},
		"a report that is missing": {[]string{"show", "/no/such/old.json"}, "/no/such/old.json"},
		"a peer without a name":    {[]string{"redirect", "-start", "-peer", "http://127.0.0.1:80/"}, "name=URL"},
		"one engine of three": {[]string{"redirect", "-start", "-engines=real", "-kafka=127.0.0.1:9092"},
			"name all three"},
		"engines without real ones": {[]string{"redirect", "-start", "-postgres=a", "-kafka=a", "-clickhouse=a"},
			"-engines=real"},
		"engines elsewhere": {[]string{"redirect", "-start", "-engines=real", "-postgres=postgres://192.0.2.1:5432/a",
			"-kafka=127.0.0.1:9092,192.0.2.2:9092", "-clickhouse=clickhouse://192.0.2.3:9000/a"}, `"192.0.2.2" is not`},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := bench(t, c.args...)
			if err == nil || !strings.Contains(errOut, c.want) {
				t.Errorf("error %v, %q is not in\n%s%s", err, c.want, errOut, out)
			}
		})
	}
}
