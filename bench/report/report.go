// Package report is the result of a run: metrics, checks, latencies and charts. It writes them as a table, as JSON and as
// a page, and compares the reports of two runs.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"linkstream/bench/proc"
)

// Report is the result of one run of a scenario.
type Report struct {
	Scenario  string       `json:"scenario"`
	Command   string       `json:"command"` // repeats the run
	Began     time.Time    `json:"began"`
	Seconds   float64      `json:"seconds"`
	Machine   proc.Machine `json:"machine"`
	Engines   []string     `json:"engines,omitempty"` // names and versions of separate engines
	Checks    []Check      `json:"checks"`
	Metrics   []Metric     `json:"metrics"`
	Latencies []Latency    `json:"latencies"`
	Series    []Series     `json:"series"`
	Growth    []Curve      `json:"growth,omitempty"`
	Health    []Health     `json:"health,omitempty"` // only of runs of several scenarios
}

// Check is a count that must be exact. If a check fails, the metrics of the run are worthless.
type Check struct {
	Name string `json:"name"`
	Want int64  `json:"want"`
	Got  int64  `json:"got"`
}

// Direction tells which values of a metric are better.
type Direction string

// The directions.
const (
	Lower  Direction = "lower"
	Higher Direction = "higher"
)

// Metric is a measured quantity with one sample per round.
type Metric struct {
	Name    string    `json:"name"` // unique in a report
	Unit    string    `json:"unit"`
	Better  Direction `json:"better"`
	Samples []float64 `json:"samples"` // in the order of the rounds
}

// Series is a quantity over the time of the run.
type Series struct {
	Chart   string    `json:"chart"` // all series of a chart have the same unit
	Name    string    `json:"name"`
	Unit    string    `json:"unit"`
	Seconds []float64 `json:"seconds"` // since the start of the run
	Values  []float64 `json:"values"`
}

// Curve is how a metric grows with the size of something.
type Curve struct {
	Chart  string    `json:"chart"` // all curves of a chart have the same unit and sizes
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Of     string    `json:"of"` // what a size is a number of
	Sizes  []float64 `json:"sizes"`
	Values []float64 `json:"values"`
}

// Include adds everything that another report has, under the name of its scenario.
func (r *Report) Include(other *Report) {
	prefix := other.Scenario + ": "
	for _, c := range other.Checks {
		c.Name = prefix + c.Name
		r.Checks = append(r.Checks, c)
	}
	for _, m := range other.Metrics {
		m.Name = prefix + m.Name
		r.Metrics = append(r.Metrics, m)
	}
	for _, l := range other.Latencies {
		l.Name = prefix + l.Name
		r.Latencies = append(r.Latencies, l)
	}
	for _, s := range other.Series {
		s.Chart = prefix + s.Chart
		r.Series = append(r.Series, s)
	}
	for _, c := range other.Growth {
		c.Chart = prefix + c.Chart
		r.Growth = append(r.Growth, c)
	}
	r.Engines = other.Engines
}

// Add adds the sample of a round to the metric with the given name. It creates the metric if necessary.
func (r *Report) Add(name, unit string, better Direction, value float64) {
	i := slices.IndexFunc(r.Metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		i = len(r.Metrics)
		r.Metrics = append(r.Metrics, Metric{Name: name, Unit: unit, Better: better})
	}
	r.Metrics[i].Samples = append(r.Metrics[i].Samples, value)
}

// Metric returns the metric with the given name, or an empty one.
func (r *Report) Metric(name string) Metric {
	if i := slices.IndexFunc(r.Metrics, func(m Metric) bool { return m.Name == name }); i >= 0 {
		return r.Metrics[i]
	}
	return Metric{}
}

// Failed returns an error that names the failed checks, or nil.
func (r *Report) Failed() error {
	var errs []error
	for _, c := range r.Checks {
		if !c.OK() {
			errs = append(errs, fmt.Errorf("%s: got %d, want %d", c.Name, c.Got, c.Want))
		}
	}
	return errors.Join(errs...)
}

// OK reports whether the count is exact.
func (c Check) OK() bool { return c.Got == c.Want }

// Median returns the median of the rounds, or 0 without rounds.
func (m Metric) Median() float64 {
	sorted := slices.Sorted(slices.Values(m.Samples))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Range returns the smallest and the largest sample, or zeros without rounds.
func (m Metric) Range() (low, high float64) {
	if len(m.Samples) == 0 {
		return 0, 0
	}
	return slices.Min(m.Samples), slices.Max(m.Samples)
}

// Save writes the report as JSON.
func (r *Report) Save(path string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Load reads a report that Save wrote, also with an earlier version of this package.
func Load(path string) (*Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	r := new(Report)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read report %q: %w", path, err)
	}
	r.rename()
	return r, nil
}
