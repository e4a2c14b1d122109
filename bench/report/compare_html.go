package report

import (
	"fmt"
	"html/template"
	"strings"
)

// The colors of the two sides of a comparison.
const (
	oldColor = "#999999"
	newColor = "#0072B2"
)

// side is one of the two reports of a comparison.
type side struct {
	Name, Color string
	Report      *Report
	Setting     []string
}

// changeRow is a metric in the table of a comparison.
type changeRow struct {
	Name, Unit           string
	OldMedian, NewMedian string // "-" if the report does not have the metric
	Change               string
	Verdict              Verdict
	Class                string // of the verdict's cell
	Picture              template.HTML
}

// ComparePage returns the comparison of two reports as an HTML page without scripts and without references to other
// files: for each metric a picture of all rounds, and for each contender the latencies by percentile.
func ComparePage(old, new *Report, changes []Change) ([]byte, error) {
	figures, err := compareLatencies(old, new)
	if err != nil {
		return nil, err
	}
	rows := make([]changeRow, len(changes))
	for i, c := range changes {
		rows[i] = newChangeRow(c)
	}
	return execute("compare.html", map[string]any{"New": new, "Alpha": alpha, "Rows": rows, "Figures": figures,
		"Sides":    []side{{"old", oldColor, old, old.setting()}, {"new", newColor, new, new.setting()}},
		"Warnings": compareWarnings(old, new)})
}

// compareWarnings returns what makes a comparison doubtful.
func compareWarnings(old, new *Report) (warnings []string) {
	if old.Machine != new.Machine {
		warnings = append(warnings, "The machines differ.")
	}
	if old.Command != new.Command {
		warnings = append(warnings, "The commands differ.")
	}
	for _, s := range []side{{Name: "old", Report: old}, {Name: "new", Report: new}} {
		if err := s.Report.Failed(); err != nil {
			warnings = append(warnings, fmt.Sprintf("Checks of the %s report failed: %v", s.Name, err))
		}
	}
	return warnings
}

func newChangeRow(c Change) changeRow {
	row := changeRow{Name: c.New.Name, Unit: c.New.Unit, OldMedian: "-", NewMedian: "-", Change: "-", Verdict: c.Verdict,
		Class: "quiet", Picture: rounds(c.Old, c.New)}
	if row.Name == "" {
		row.Name, row.Unit = c.Old.Name, c.Old.Unit
	}
	if len(c.Old.Samples) > 0 {
		row.OldMedian = number(c.Old.Median())
	}
	if len(c.New.Samples) > 0 {
		row.NewMedian = number(c.New.Median())
	}
	if percent, known := c.Percent(); known {
		row.Change = fmt.Sprintf("%+.1f %%", percent)
	}
	if c.Verdict == Better || c.Verdict == Worse {
		row.Class = string(c.Verdict)
	}
	return row
}

// rounds draws the rounds of a metric in two reports on one axis, which begins at 0.
func rounds(old, new Metric) template.HTML {
	const laneHeight, radius = 12, 2.5
	_, oldHigh := old.Range()
	_, newHigh := new.Range()
	scale := (barWidth - 2*radius) / max(oldHigh, newHigh, 1e-9)
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg width="%d" height="%d">`, barWidth, 2*laneHeight)
	for lane, m := range []Metric{old, new} {
		color, middle := []string{oldColor, newColor}[lane], float64(lane)*laneHeight+laneHeight/2
		if len(m.Samples) > 0 {
			fmt.Fprintf(&svg, `<rect x="0" y="%g" width="%.1f" height="%d" fill="%s" fill-opacity="0.25"/>`,
				middle-laneHeight/2+1, radius+m.Median()*scale, laneHeight-2, color)
		}
		for _, v := range m.Samples {
			fmt.Fprintf(&svg, `<circle cx="%.1f" cy="%g" r="%g" fill="%s"/>`, radius+v*scale, middle, radius, color)
		}
	}
	svg.WriteString(`</svg>`)
	return template.HTML(svg.String()) // contains only numbers and colors from this package
}

// compareLatencies returns a chart for each latency that is in both reports.
func compareLatencies(old, new *Report) (figures []figure, err error) {
	for _, after := range new.Latencies {
		title := after.subject()
		for _, before := range old.Latencies {
			if before.subject() != title {
				continue
			}
			before.Name, after.Name = "old: "+before.Name, "new: "+after.Name
			colors := palette{fixed: map[string]string{before.Name: oldColor, after.Name: newColor}}
			f, err := colors.percentiles(title+": latency by percentile", []Latency{before, after})
			if err != nil {
				return nil, err
			}
			figures = append(figures, f)
		}
	}
	return figures, nil
}
