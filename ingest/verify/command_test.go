package verify_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"linkstream/ingest/verify"
	"linkstream/schema"
	wiring "linkstream/schema/service"
	"linkstream/schema/testkit"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	s := newService(t, 1)
	s.produce(0, clicks(lane(1), 1, 10)...)
	s.count(10)
	report := func(l schema.SpoolLane) string {
		text, err := json.Marshal(schema.SpoolReport{Dir: "a", At: noon, Lanes: []schema.SpoolLane{l}})
		testkit.Must(t, err)
		return string(text) + "\n"
	}
	whole := report(schema.SpoolLane{Lane: lane(1), Recorded: 10, Pending: []schema.SeqRange{{First: 10, Last: 10}}})
	longer := report(schema.SpoolLane{Lane: lane(1), Recorded: 12})
	file := filepath.Join(t.TempDir(), "lanes")
	testkit.Must(t, os.WriteFile(file, []byte(whole), 0o600))
	run := func(cfg verify.Config, stdin string) (string, error) {
		var out bytes.Buffer
		sources := verify.Sources{Topic: s.client, Clicks: s.store, Positions: s.store}
		err := verify.RunCommand(t.Context(), cfg, sources, nil, strings.NewReader(stdin), &out)
		return out.String(), err
	}
	t.Run("it adds up", func(t *testing.T) {
		for lanes, says := range map[string]string{"": "No spool was read", file: "The spool a was read at",
			file + ",-": "The spool a was read at"} {
			out, err := run(verify.Config{Lanes: lanes}, whole+whole)
			if err != nil || !strings.Contains(out, "It adds up") || !strings.Contains(out, says) {
				t.Errorf("error %v, printed:\n%s", err, out)
			}
		}
	})
	t.Run("it does not add up", func(t *testing.T) {
		out, err := run(verify.Config{Lanes: "-", JSON: true}, whole+longer)
		if exit := new(wiring.ExitError); err == nil || errors.As(err, &exit) {
			t.Errorf("error %v, want one without an exit code", err)
		}
		var got verify.Report
		testkit.Must(t, json.Unmarshal([]byte(out), &got))
		testkit.Equal(t, "totals", got.Totals, verify.Totals{Lanes: 1, Recorded: 12, Counted: 10, Missing: 2})
		testkit.Equal(t, "gaps", got.Lanes[0].Gaps, []verify.Gap{{First: 11, Last: 12}})
	})
	t.Run("nothing is known", func(t *testing.T) {
		for _, input := range []string{"", "{}", "[]", "noise", whole + "noise", whole[:40],
			strings.Replace(whole, `"recorded":10`, `"recorded":9`, 1),
			strings.Replace(whole, lane(1).String(), "lane", 1), strings.Replace(whole, `"dir"`, `"other"`, 1)} {
			out, err := run(verify.Config{Lanes: "-"}, input)
			if exit := new(wiring.ExitError); !errors.As(err, &exit) || exit.Code != 2 || out != "" {
				t.Errorf("%q: error %v, printed %q", input, err, out)
			}
		}
		if _, err := run(verify.Config{Lanes: file + ".missing"}, ""); err == nil ||
			!strings.Contains(err.Error(), "-lanes: open") {
			t.Errorf("error %v", err)
		}
		s.broker.Stop()
		if _, err := run(verify.Config{}, ""); err == nil {
			t.Error("no error without a broker")
		}
	})
}

// FuzzReports gives bytes to the command as reports about spools. It checks that nothing crashes, and that every click
// in accepted reports is found.
func FuzzReports(f *testing.F) {
	f.Add([]byte(
		`{"dir":"a","at":"2026-11-21T12:00:00Z","dropped":1,` +
			`"lanes":[{"lane":"01010000000000000000000000000000/1","recorded":9,"pending":[{"first":2,"last":9}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) { // a second look comes later
			var out bytes.Buffer
			cfg, sources := verify.Config{Lanes: "-", JSON: true}, verify.Sources{Clicks: new(oneLane)}
			err := verify.RunCommand(t.Context(), cfg, sources, nil, bytes.NewReader(data), &out)
			if exit := new(wiring.ExitError); errors.As(err, &exit) {
				return
			}
			var report struct{ Totals verify.Totals }
			testkit.Must(t, json.Unmarshal(out.Bytes(), &report))
			got := report.Totals
			if got.Counted+got.Topic > 0 || got.Spool+got.SetAside+got.Missing+got.Dropped != got.Recorded {
				t.Errorf("%+v", got)
			}
		})
	})
}
