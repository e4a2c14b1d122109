package report

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/wcharczuk/go-chart/v2"
	"github.com/wcharczuk/go-chart/v2/drawing"
)

const (
	chartWidth, chartHeight = 900, 280
	maxPercentile           = 99.999
)

// figure is a chart with its legend.
type figure struct {
	Title string
	Lines []legend
	SVG   template.HTML
}

type legend struct{ Name, Color string }

// colors can be distinguished by color-blind readers and in print (Okabe and Ito, "Color Universal Design").
var colors = []string{"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#999999"}

// palette assigns a color to each name, the same one in all charts of a report.
type palette struct {
	fixed map[string]string // colors of some names
	names []string          // the others, in the order of colors
}

func (p *palette) color(name string) string {
	if color, ok := p.fixed[name]; ok {
		return color
	}
	i := slices.Index(p.names, name)
	if i < 0 {
		i = len(p.names)
		p.names = append(p.names, name)
	}
	return colors[i%len(colors)]
}

// overTime draws the series of one chart.
func (p *palette) overTime(title string, series []Series) (figure, error) {
	top, end := 0.0, 0.0
	var lines []chart.Series
	for _, s := range series {
		for k, v := range s.Values {
			top, end = max(top, v), max(end, s.Seconds[k])
		}
		lines = append(lines, p.line(s.Name, s.Seconds, s.Values))
	}
	c := chart.Chart{Series: lines}
	c.XAxis.Range = &chart.ContinuousRange{Max: end}
	c.XAxis.Ticks = ticks(end, " s")
	c.YAxis.Ticks = ticks(top, "")
	c.YAxis.Range = &chart.ContinuousRange{Max: c.YAxis.Ticks[len(c.YAxis.Ticks)-1].Value}
	return p.render(title, c)
}

// percentiles draws distributions by percentile. Both axes are logarithmic, so that the tail gets as much room as the rest.
func (p *palette) percentiles(title string, latencies []Latency) (figure, error) {
	var lines []chart.Series
	low, high := math.Inf(1), math.Inf(-1)
	for _, l := range latencies {
		h, err := l.decode()
		if err != nil {
			return figure{}, err
		}
		var x, y []float64
		for nines := 0.0; nines <= nine(maxPercentile); nines += 0.02 {
			v := math.Log10(max(1, float64(h.ValueAtPercentile(100-100*math.Pow(10, -nines)))/1e3)) // microseconds
			x, y = append(x, nines), append(y, v)
			low, high = min(low, v), max(high, v)
		}
		lines = append(lines, p.line(l.Name, x, y))
	}
	c := chart.Chart{Series: lines}
	for _, p := range []float64{0, 50, 90, 99, 99.9, 99.99, maxPercentile} {
		c.XAxis.Ticks = append(c.XAxis.Ticks, chart.Tick{Value: nine(p), Label: fmt.Sprintf("%v%%", p)})
	}
	c.YAxis = decades(low, high, func(at float64) string { return fmt.Sprintf("%g ms", math.Pow(10, at-3)) })
	return p.render(title, c)
}

// decades returns a logarithmic axis from a power of ten to another one.
func decades(low, high float64, label func(at float64) string) (axis chart.YAxis) {
	low, high = math.Floor(low), max(math.Floor(low)+1, math.Ceil(high))
	axis.Range = &chart.ContinuousRange{Min: low, Max: high}
	for at := low; at <= high; at++ {
		axis.Ticks = append(axis.Ticks, chart.Tick{Value: at, Label: label(at)})
	}
	return axis
}

// growth draws the curves of one chart. Both axes are logarithmic: what grows in proportion to the size is a diagonal, what does not
// grow is level.
func (p *palette) growth(title string, curves []Curve) (figure, error) {
	const least = 1e-3 // of what a logarithm has
	// The chart writes labels as they are.
	of, unit := template.HTMLEscapeString(curves[0].Of), template.HTMLEscapeString(curves[0].Unit)
	var c chart.Chart
	low, high := math.Inf(1), math.Inf(-1)
	for _, curve := range curves {
		var x, y []float64
		for k, size := range curve.Sizes {
			v := math.Log10(max(least, curve.Values[k]))
			x, y = append(x, math.Log10(max(least, size))), append(y, v)
			low, high = min(low, v), max(high, v)
		}
		c.Series = append(c.Series, p.line(curve.Name, x, y))
	}
	for _, size := range curves[0].Sizes {
		c.XAxis.Ticks = append(c.XAxis.Ticks, chart.Tick{Value: math.Log10(max(least, size)), Label: shortSize(size) + " " + of})
	}
	c.YAxis = decades(low, high, func(at float64) string { return fmt.Sprintf("%g %s", math.Pow(10, at), unit) })
	return p.render(title, c)
}

// shortSize returns a size of a few characters, such as 1M, so that the last label has room beside the chart.
func shortSize(size float64) string {
	switch {
	case size >= 1e6:
		return fmt.Sprintf("%gM", size/1e6)
	case size >= 1e3:
		return fmt.Sprintf("%gk", size/1e3)
	}
	return fmt.Sprintf("%g", size)
}

// nine returns the number of nines of a percentile, which is 3 for 99.9.
func nine(percentile float64) float64 { return -math.Log10(1 - percentile/100) }

func (p *palette) line(name string, x, y []float64) chart.Series {
	return chart.ContinuousSeries{Name: name, XValues: x, YValues: y,
		Style: chart.Style{StrokeColor: drawing.ColorFromHex(strings.TrimPrefix(p.color(name), "#")), StrokeWidth: 1.5}}
}

func (p *palette) render(title string, c chart.Chart) (figure, error) {
	grid := chart.Style{StrokeColor: drawing.ColorFromHex("dddddd"), StrokeWidth: 1}
	c.Width, c.Height = chartWidth, chartHeight
	c.YAxis.AxisType = chart.YAxisSecondary // on the left
	c.XAxis.GridMajorStyle, c.YAxis.GridMajorStyle = grid, grid
	var svg bytes.Buffer
	if err := c.Render(chart.SVG, &svg); err != nil {
		return figure{}, fmt.Errorf("draw chart %q: %w", title, err)
	}
	f := figure{Title: title, SVG: template.HTML(svg.String())} // contains only numbers and labels from this package
	for _, s := range c.Series {
		f.Lines = append(f.Lines, legend{s.GetName(), p.color(s.GetName())})
	}
	return f, nil
}

// ticks returns round values from 0 to at least the greatest value.
func ticks(greatest float64, unit string) (all []chart.Tick) {
	greatest = max(greatest, 1e-3)
	step := math.Pow(10, math.Floor(math.Log10(greatest)))
	switch {
	case greatest < 2*step:
		step /= 5
	case greatest < 5*step:
		step /= 2
	}
	for i := 0.0; ; i++ {
		value := i * step
		label := fmt.Sprintf("%.6g", value) + unit
		if greatest >= 1e4 {
			label = fmt.Sprintf("%.6gk", value/1e3) + unit
		}
		all = append(all, chart.Tick{Value: value, Label: label})
		if value >= greatest {
			return all
		}
	}
}
