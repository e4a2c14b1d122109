package report

import (
	"fmt"
	"math"
	"strings"
)

// plot is latency by percentile. Both axes are logarithmic, so that the tail has as much room as the rest. Positions
// are in percent of the width and of the height.
type plot struct {
	Lines []curve
	X, Y  []tick
}

// curve is the latency of a contender.
type curve struct {
	Name   string
	Color  int    // of the contender
	Side   int    // the report, from 0
	Points string // of an SVG polyline, whose y axis points down
}

type tick struct {
	At    float64
	Label string
}

// curveColors is the number of colors that the page has.
const curveColors = 8

// curves draws all latencies of a scenario in one plot. A contender has the same color in both reports.
func curves(sides []*Scenario) *plot {
	low, high, nines := math.Inf(1), math.Inf(-1), 1.0
	for _, s := range sides {
		for _, l := range s.Latencies {
			for _, p := range l.Points {
				low, high, nines = min(low, height(p[1])), max(high, height(p[1])), max(nines, nine(p[0]))
			}
		}
	}
	if math.IsInf(low, 1) {
		return nil
	}
	low, high = math.Floor(low), max(math.Floor(low)+1, math.Ceil(high))
	p := new(plot)
	for n, label := range []string{"0", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %"} {
		if float64(n) <= nines {
			p.X = append(p.X, tick{100 * float64(n) / nines, label})
		}
	}
	for decade := low; decade <= high; decade++ {
		p.Y = append(p.Y, tick{100 * (decade - low) / (high - low), fmt.Sprintf("%g ms", math.Pow(10, decade))})
	}
	colors := map[string]int{}
	for side, s := range sides {
		for _, l := range s.Latencies {
			name := l.Contender
			if _, ok := colors[name]; !ok {
				colors[name] = len(colors) % curveColors
			}
			var line strings.Builder
			for _, at := range l.Points {
				fmt.Fprintf(&line, "%.2f,%.2f ", 100*nine(at[0])/nines, 100-100*(height(at[1])-low)/(high-low))
			}
			label := fmt.Sprintf("%s, %s %ss per second", name, number(l.Rate), l.Operation)
			p.Lines = append(p.Lines, curve{label, colors[name], side, line.String()})
		}
	}
	return p
}

// nine returns the number of nines of a percentile, which is 3 for 99.9.
func nine(percentile float64) float64 { return 0 - math.Log10(max(1e-7, 1-percentile/100)) }

// height returns the position of a latency, from a microsecond on.
func height(ms float64) float64 { return math.Log10(max(1e-3, ms)) }
