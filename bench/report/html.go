package report

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"slices"
)

//go:embed report.html style.html compare.html
var templates embed.FS

// barWidth is the width of the longest bar in pixels.
const barWidth = 220

// row is a metric with a bar. The bars of one unit have the same scale.
type row struct {
	Metric
	Middle, Least, Most  string
	Bar, BarLow, BarHigh float64 // pixels
}

// Page returns the report as an HTML page without scripts and without references to other files.
func (r *Report) Page() ([]byte, error) {
	figures, err := r.figures()
	if err != nil {
		return nil, err
	}
	return execute("report.html", map[string]any{"Report": r, "Rows": r.rows(), "Figures": figures, "Took": number(r.Seconds),
		"Setting": r.setting()})
}

// execute executes one of the templates.
func execute(name string, data any) ([]byte, error) {
	t, err := template.ParseFS(templates, "*.html")
	if err != nil {
		return nil, fmt.Errorf("read template of page: %w", err)
	}
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, name, data); err != nil {
		return nil, fmt.Errorf("write page: %w", err)
	}
	return out.Bytes(), nil
}

// rows returns the metrics, grouped by unit.
func (r *Report) rows() (rows []row) {
	longest := map[string]float64{}
	var units []string
	for _, m := range r.Metrics {
		if !slices.Contains(units, m.Unit) {
			units = append(units, m.Unit)
		}
		_, high := m.Range()
		longest[m.Unit] = max(longest[m.Unit], high, 1e-9)
	}
	for _, m := range r.Metrics {
		low, high := m.Range()
		scale := barWidth / longest[m.Unit]
		rows = append(rows, row{Metric: m, Middle: number(m.Median()), Least: number(low), Most: number(high),
			Bar: m.Median() * scale, BarLow: low * scale, BarHigh: high * scale})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return slices.Index(units, a.Unit) - slices.Index(units, b.Unit) })
	return rows
}

// figures returns one chart of all latencies, and one for each kind of growth and of series.
func (r *Report) figures() ([]figure, error) {
	var titles []string
	charts := map[string][]Series{}
	for _, s := range r.Series {
		if len(s.Values) < 2 { // not enough for a line
			continue
		}
		title := fmt.Sprintf("%s, %s", s.Chart, s.Unit)
		if charts[title] == nil {
			titles = append(titles, title)
		}
		charts[title] = append(charts[title], s)
	}
	var figures []figure
	var colors palette
	if len(r.Latencies) > 0 {
		f, err := colors.percentiles("latency by percentile", r.Latencies)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f)
	}
	for _, curves := range r.growth() {
		f, err := colors.growth(fmt.Sprintf("growth of %s", curves[0].Chart), curves)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f)
	}
	for _, title := range titles {
		f, err := colors.overTime(title, charts[title])
		if err != nil {
			return nil, err
		}
		figures = append(figures, f)
	}
	return figures, nil
}

// growth returns the curves by chart, without those that are no line.
func (r *Report) growth() (charts [][]Curve) {
	for _, c := range r.Growth {
		if len(c.Sizes) < 2 || len(c.Sizes) != len(c.Values) {
			continue
		}
		i := slices.IndexFunc(charts, func(curves []Curve) bool { return curves[0].Chart == c.Chart })
		if i < 0 {
			i = len(charts)
			charts = append(charts, nil)
		}
		charts[i] = append(charts[i], c)
	}
	return charts
}
