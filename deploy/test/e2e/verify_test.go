package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/ingest/verify"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// verify runs the command, with what all edges have recorded, and returns its output and exit code.
func (s *system) verify(t *testing.T, flags ...string) (stdout, stderr string, code int) {
	t.Helper()
	if s.programs[0].name == "standalone" {
		return s.programs[0].command(t, append([]string{"verify"}, flags...)...)
	}
	var lanes strings.Builder
	for _, p := range s.programs {
		if p.name != "edge" {
			continue
		}
		out, errOut, code := p.command(t, "lanes")
		if code != 0 {
			t.Fatalf("lanes: exit code %d\n%s", code, errOut)
		}
		lanes.WriteString(out)
	}
	file := filepath.Join(t.TempDir(), "lanes")
	testkit.Must(t, os.WriteFile(file, []byte(lanes.String()), 0o600))
	return s.program("ingest").command(t, slices.Concat([]string{"verify", "-lanes", file}, flags)...)
}

// wantVerified requires that every recorded click is accounted for, and returns how many there are.
func (s *system) wantVerified(t *testing.T) verify.Totals {
	t.Helper()
	out, errOut, code := s.verify(t, "-json")
	var report verify.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 || !report.AddsUp || len(report.Spools) == 0 {
		t.Errorf("verify: exit code %d, error %v\n%s\n%s", code, err, errOut, out)
	}
	return report.Totals
}

func TestVerify(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	const clicks = 30
	s.owner().Alias(t, "known", "https://example.com/")
	visit := func(n int) {
		t.Helper()
		for range n {
			s.click(t, "known")
		}
	}
	t.Run("it adds up while the service runs", func(t *testing.T) {
		visit(clicks)
		testkit.Equal(t, "recorded", s.wantVerified(t).Recorded, clicks)
		s.owner().WaitTotal(t, "known", clicks)
		totals := s.wantVerified(t)
		testkit.Equal(t, "counted", totals.Counted, clicks)
	})
	visit(clicks)
	for _, p := range s.programs {
		p.kill(t)
	}
	t.Run("it adds up when everything was killed", func(t *testing.T) {
		testkit.Equal(t, "recorded", s.wantVerified(t).Recorded, 2*clicks)
	})
	s.start(t) // until the end of this test, not of a subtest
	t.Run("it adds up afterwards", func(t *testing.T) {
		s.owner().WaitTotal(t, "known", 2*clicks)
		testkit.Equal(t, "counted", s.wantVerified(t).Counted, 2*clicks)
	})
	t.Run("it names a gap and ends with code 1", func(t *testing.T) {
		lane := schema.Lane{Incarnation: schema.Incarnation{1, 2, 3}, Number: 7}
		var batch stream.Batch
		batch.Reset(time.Now())
		for seq := range uint64(20) {
			if seq < 10 || seq >= 14 { // 11 to 14 are missing
				click := schema.Click{Lane: lane, Seq: seq + 1, LinkID: 1 << 40, ClickedAt: time.Now()}
				batch.Append(nil, schema.AppendClick(nil, &click))
			}
		}
		s.produce(t, &batch)
		out, errOut, code := s.verify(t)
		if code != 1 || !strings.Contains(out, "Missing in lane "+lane.String()+":\n  11 to 14: ") ||
			!strings.Contains(errOut, "4 clicks are missing") {
			t.Errorf("exit code %d, printed:\n%s\n%s", code, out, errOut)
		}
	})
	t.Run("it ends with code 2 if it cannot tell", func(t *testing.T) {
		out, errOut, code := s.verify(t, "-lanes", filepath.Join(t.TempDir(), "missing"))
		if code != 2 || out != "" || errOut == "" {
			t.Errorf("exit code %d, printed:\n%s\n%s", code, out, errOut)
		}
	})
}
