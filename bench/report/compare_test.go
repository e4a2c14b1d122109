package report_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"linkstream/bench/proc"
	"linkstream/bench/report"
)

// of returns a report with one metric.
func of(name string, better report.Direction, samples ...float64) *report.Report {
	metric := report.Metric{Name: name, Unit: "µs", Better: better, Samples: samples}
	return &report.Report{Scenario: "redirect", Metrics: []report.Metric{metric}}
}

func TestCompare(t *testing.T) {
	low, high := []float64{5, 6, 7, 8, 9}, []float64{10, 11, 12, 13, 14}
	for _, c := range []struct {
		name     string
		better   report.Direction
		old, new []float64
		want     report.Verdict
	}{
		{"a lower value in every round is better if lower is better", report.Lower, high, low, report.Better},
		{"a higher value in every round is worse if lower is better", report.Lower, low, high, report.Worse},
		{"a higher value in every round is better if higher is better", report.Higher, low, high, report.Better},
		{"overlapping rounds are noise", report.Lower, high, []float64{9, 10.5, 11.5, 12.5, 15}, report.Noise},
		{"the same rounds are noise", report.Lower, []float64{1, 1, 1, 1, 1}, []float64{1, 1, 1, 1, 1}, report.Noise},
		{"four rounds are too few", report.Lower, low[:4], high[:4], report.TooFew},
		{"a metric without rounds has too few", report.Lower, nil, high, report.TooFew},
	} {
		t.Run(c.name, func(t *testing.T) {
			changes, err := report.Compare(of("CPU", c.better, c.old...), of("CPU", c.better, c.new...))
			if err != nil || len(changes) != 1 || changes[0].Verdict != c.want {
				t.Errorf("changes %+v, error %v, want %s", changes, err, c.want)
			}
		})
	}
	t.Run("metrics of one report only are listed", func(t *testing.T) {
		changes, err := report.Compare(of("gone", report.Lower, 1), of("new", report.Lower, 2))
		if err != nil || len(changes) != 2 || changes[0].Verdict != report.Absent || changes[1].Verdict != report.Absent {
			t.Errorf("changes %+v, error %v", changes, err)
		}
	})
	t.Run("reports of different scenarios are not comparable", func(t *testing.T) {
		if _, err := report.Compare(of("CPU", report.Lower), &report.Report{Scenario: "links"}); err == nil {
			t.Error("no error")
		}
	})
	t.Run("an unchanged metric is rarely called changed", func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		draw := func() (samples []float64) {
			for range 5 {
				samples = append(samples, 10+random.ExpFloat64()) // long tails, as times have them
			}
			return samples
		}
		wrong := 0
		for range 2000 {
			changes, err := report.Compare(of("CPU", report.Lower, draw()...), of("CPU", report.Lower, draw()...))
			if err != nil {
				t.Fatal(err)
			}
			if changes[0].Verdict != report.Noise {
				wrong++
			}
		}
		if wrong > 2000/50 {
			t.Errorf("%d of 2000", wrong)
		}
	})
	t.Run("the rounds keep their order", func(t *testing.T) {
		old := of("CPU", report.Lower, 3, 1, 2)
		if _, err := report.Compare(old, old); err != nil || old.Metrics[0].Samples[0] != 3 {
			t.Errorf("samples %v, error %v", old.Metrics[0].Samples, err)
		}
	})
}

func TestWriteChanges(t *testing.T) {
	old, new := of("CPU", report.Lower, 10, 11, 12, 13, 14), of("CPU", report.Lower, 5, 6, 7, 8, 9)
	new.Machine = proc.Machine{Cores: 64}
	new.Command = "go run ./bench redirect -links=1"
	new.Add("memory", "MiB", report.Lower, 5)
	changes, err := report.Compare(old, new)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := report.WriteChanges(&out, old, new, changes); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"machines differ", "commands differ", "12.0  7.00  -41.7%  0.008       better  CPU (µs)",
		"not in both  memory (MiB)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
