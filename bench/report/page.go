package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
)

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Funcs(
	template.FuncMap{"add": func(a, b int) int { return a + b }}).Parse(pageHTML))

// section is a scenario of one or two reports on the page.
type section struct {
	Name, Summary string
	Bars          []bars
	Curves        *plot // nil without latencies
	Rows          []row
	Sides         []side // the reports
}

// side is a scenario in one report.
type side struct {
	Answer []string
	Levels []level
}

// bars compares the contenders of one metric. Its bars share a scale that begins at 0.
type bars struct {
	Title, Unit string
	Rows        []barRow
}

// barRow is a contender with a bar for each report.
type barRow struct {
	Of   string
	Bars []bar
}

// bar has the median as its length and a line from the smallest to the largest round. Lengths are in percent.
type bar struct {
	Side              int // the report, from 0
	Length, Low, Span float64
	Median, Range     string
}

// row is a metric in the table of numbers.
type row struct {
	Name, Of, Unit string
	Cells          []cell
	Change         string // of the second report relative to the first
	Clear          bool   // the ranges of the two reports do not overlap, with enough rounds to say so
	grown          float64
}

// clearRounds is the number of rounds from which on two ranges that do not overlap show a difference.
const clearRounds = 3

type cell struct{ Median, Range string }

// Page returns one report, or two side by side, as an HTML page without scripts and without references to other files.
func Page(reports ...*Report) ([]byte, error) {
	type head struct {
		*Report
		Setting []string
		Health  string
	}
	var heads []head
	for _, r := range reports {
		heads = append(heads, head{r, r.setting(), r.health()})
	}
	var out bytes.Buffer
	err := pageTemplate.Execute(&out, map[string]any{"Heads": heads, "Sections": sections(reports),
		"Two": len(reports) > 1, "SweepHead": sweepHead, "Differences": differences(reports)})
	if err != nil {
		return nil, fmt.Errorf("write page: %w", err)
	}
	return out.Bytes(), nil
}

// sections returns every scenario of the reports, in the order of the first.
func sections(reports []*Report) (all []section) {
	var names []string
	for _, r := range reports {
		for _, s := range r.Scenarios {
			if !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	for _, name := range names {
		s := section{Name: name}
		var sides []*Scenario
		for _, r := range reports {
			one := r.Scenario(name)
			sides, s.Sides = append(sides, one), append(s.Sides, side{one.Answer, one.levels()})
			s.Summary = max(s.Summary, one.Summary)
		}
		s.Rows, s.Bars, s.Curves = rows(sides, len(differences(reports)) == 0), pictures(sides), curves(sides)
		all = append(all, s)
	}
	return all
}

// keys returns the metrics of all sides, without their samples, grouped by name.
func keys(sides []*Scenario) (all []Metric) {
	var names []string
	for _, s := range sides {
		for _, m := range s.Metrics {
			if !slices.ContainsFunc(all, func(k Metric) bool { return k.Name == m.Name && k.Of == m.Of && k.Rate == m.Rate }) {
				all = append(all, Metric{Name: m.Name, Of: m.Of, Unit: m.Unit, Rate: m.Rate})
			}
			if !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Metric) int {
		return cmp.Or(slices.Index(names, a.Name)-slices.Index(names, b.Name), cmp.Compare(a.Rate, b.Rate))
	})
	return all
}

// rows returns the table of numbers. Changes are left out if the reports cannot be compared.
func rows(sides []*Scenario, compare bool) (all []row) {
	for _, key := range keys(sides) {
		r := row{Name: key.Title(), Of: key.Of, Unit: key.Unit}
		var found []Metric
		for _, s := range sides {
			m := s.At(key.Name, key.Of, key.Rate)
			c := cell{"-", ""}
			if len(m.Samples) > 0 {
				low, high := m.Range()
				c = cell{number(m.Median()), number(low) + " to " + number(high)}
				found = append(found, m)
			}
			r.Cells = append(r.Cells, c)
		}
		if compare && len(found) == 2 && found[0].Median() != 0 {
			r.grown = found[1].Median()/found[0].Median() - 1
			r.Change = fmt.Sprintf("%+.1f %%", 100*r.grown)
			low0, high0 := found[0].Range()
			low1, high1 := found[1].Range()
			r.Clear = (high0 < low1 || high1 < low0) && min(len(found[0].Samples), len(found[1].Samples)) >= clearRounds
		}
		all = append(all, r)
	}
	return all
}

// pictured reports whether the contenders of a metric are compared by bars: the CPU time of operations, the highest
// rates, and latencies where there are no curves.
func pictured(m Metric, curves bool) bool {
	switch {
	case strings.Contains(m.Of, " / ") || strings.HasSuffix(m.Unit, "cores"):
		return false
	case strings.HasPrefix(m.Name, "CPU "), strings.HasSuffix(m.Name, "per second, closed loop"):
		return true
	}
	return !curves && m.Unit == "ms"
}

func pictures(sides []*Scenario) (all []bars) {
	curves := slices.ContainsFunc(sides, func(s *Scenario) bool { return len(s.Latencies) > 0 })
	var highest float64
	for _, key := range keys(sides) {
		if !pictured(key, curves) {
			continue
		}
		if len(all) == 0 || all[len(all)-1].Title != key.Title() {
			all, highest = append(all, bars{Title: key.Title(), Unit: key.Unit}), 0
			for _, s := range sides {
				for _, m := range s.Metrics {
					if m.Title() == key.Title() && pictured(m, curves) {
						_, high := m.Range()
						highest = max(highest, high)
					}
				}
			}
		}
		b := &all[len(all)-1]
		r := barRow{Of: key.Of}
		for i, s := range sides {
			m := s.At(key.Name, key.Of, key.Rate)
			if len(m.Samples) == 0 {
				continue
			}
			low, high := m.Range()
			percent := 100 / max(highest, math.SmallestNonzeroFloat32)
			r.Bars = append(r.Bars, bar{i, m.Median() * percent, low * percent, (high - low) * percent, number(m.Median()),
				number(low) + " to " + number(high)})
		}
		b.Rows = append(b.Rows, r)
	}
	return all
}
