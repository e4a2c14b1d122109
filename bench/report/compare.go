package report

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"
)

// alpha is the probability with which an unchanged metric is called changed. It is below the usual 0.05, because a report
// has dozens of metrics. Five rounds on each side are enough to reach it.
const alpha = 0.01

// Verdict is the difference of a metric between two reports.
type Verdict string

// The verdicts.
const (
	Better Verdict = "better"
	Worse  Verdict = "WORSE"
	Noise  Verdict = "noise"       // the rounds do not show a difference
	TooFew Verdict = "few rounds"  // too few rounds to show any difference
	Absent Verdict = "not in both" // in one of the reports only
)

// Change is a metric in two reports.
type Change struct {
	Old, New Metric
	P        float64 // probability of such a difference if nothing has changed
	Verdict  Verdict
}

// Percent returns the change of the median in percent of the old one. It returns false if there is no such number.
func (c Change) Percent() (percent float64, known bool) {
	if len(c.Old.Samples) == 0 || len(c.New.Samples) == 0 || c.Old.Median() == 0 {
		return 0, false
	}
	return 100 * (c.New.Median()/c.Old.Median() - 1), true
}

// Compare compares every metric of two reports by the Mann-Whitney U test, which assumes no distribution. It returns an
// error if the reports are of different scenarios.
func Compare(old, new *Report) ([]Change, error) {
	if old.Scenario != new.Scenario {
		return nil, fmt.Errorf("compare reports: one is of scenario %q, the other of %q", old.Scenario, new.Scenario)
	}
	var changes []Change
	for _, m := range old.Metrics {
		changes = append(changes, compare(m, new.Metric(m.Name)))
	}
	for _, m := range new.Metrics {
		if old.Metric(m.Name).Name == "" {
			changes = append(changes, compare(Metric{}, m))
		}
	}
	return changes, nil
}

func compare(old, new Metric) Change {
	c := Change{Old: old, New: new}
	if old.Name == "" || new.Name == "" {
		c.Verdict = Absent
		return c
	}
	sample := func(m Metric) *benchmath.Sample {
		// NewSample sorts its argument, but the metric must keep the order of its rounds.
		return benchmath.NewSample(slices.Clone(m.Samples), &benchmath.Thresholds{CompareAlpha: alpha})
	}
	result := benchmath.AssumeNothing.Compare(sample(old), sample(new))
	c.P = result.P
	switch {
	case !canTell(len(old.Samples), len(new.Samples)):
		c.Verdict = TooFew
	case result.P >= alpha:
		c.Verdict = Noise
	case (new.Median() > old.Median()) == (new.Better == Higher):
		c.Verdict = Better
	default:
		c.Verdict = Worse
	}
	return c
}

// canTell reports whether n and m rounds can show a difference at all. Even the most extreme order of n+m values, with
// all values of one side first, occurs by chance in 2 of (n+m choose n) cases.
func canTell(n, m int) bool {
	ways := 1.0
	for i := range n {
		ways *= float64(m+i+1) / float64(i+1)
	}
	return n > 0 && m > 0 && 2/ways < alpha
}

// WriteChanges writes changes as a table for a terminal.
func WriteChanges(w io.Writer, old, new *Report, changes []Change) error {
	if old.Machine != new.Machine {
		fmt.Fprintf(w, "The machines differ: %+v and %+v.\n", old.Machine, new.Machine)
	}
	if old.Command != new.Command {
		fmt.Fprintf(w, "The commands differ:\n  %s\n  %s\n", old.Command, new.Command)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "old\tnew\tchange\tp\tverdict\t\n")
	for _, c := range changes {
		name, unit := c.New.Name, c.New.Unit
		if name == "" {
			name, unit = c.Old.Name, c.Old.Unit
		}
		before, after, change, p := "-", "-", "-", "-"
		if len(c.Old.Samples) > 0 {
			before = number(c.Old.Median())
		}
		if len(c.New.Samples) > 0 {
			after = number(c.New.Median())
		}
		if c.Verdict != Absent {
			p = fmt.Sprintf("%.3f", c.P)
			if percent, known := c.Percent(); known {
				change = fmt.Sprintf("%+.1f%%", percent)
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t  %s (%s)\n", before, after, change, p, c.Verdict, name, unit)
	}
	return table.Flush()
}
