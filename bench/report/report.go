// Package report is the result of a run: metrics, latencies and checks of each scenario. It is written as text, as JSON
// and as a page with plots.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"linkstream/bench/proc"
)

// Report is the result of one command.
type Report struct {
	Command   string       `json:"command"` // repeats the run
	Began     time.Time    `json:"began"`
	Seconds   float64      `json:"seconds"`
	Commit    string       `json:"commit,omitempty"` // of the measured tree, if the program knows it
	Machine   proc.Machine `json:"machine"`
	Engines   []string     `json:"engines,omitempty"` // names and versions of separate engines
	Scenarios []*Scenario  `json:"scenarios"`
	Bounds    []Bound      `json:"bounds,omitempty"` // of a single scenario that is part of all, only the machine's
	// Incomplete says why the run ended early. Its last scenario has the rounds up to then.
	Incomplete string `json:"incomplete,omitempty"`
}

// Scenario is the result of one scenario.
type Scenario struct {
	Name      string    `json:"name"`
	Summary   string    `json:"summary"`
	Answer    []string  `json:"answer,omitempty"` // what the scenario was asked, in a few lines
	Metrics   []Metric  `json:"metrics"`
	Latencies []Latency `json:"latencies,omitempty"`
	Checks    []Check   `json:"checks,omitempty"`
}

// Metric is a measured quantity with one sample per round. Name, Of and Rate are unique together in a scenario.
type Metric struct {
	Name    string    `json:"name"` // such as "CPU per redirect"
	Of      string    `json:"of"`   // the contender, or two of them as "a / b"
	Unit    string    `json:"unit"`
	Rate    float64   `json:"rate,omitempty"` // operations per second that an open loop asked for
	Samples []float64 `json:"samples"`        // in the order of the rounds
}

// Title returns the name with the rate.
func (m Metric) Title() string {
	if m.Rate == 0 {
		return m.Name
	}
	return fmt.Sprintf("%s at %s/s", strings.TrimSuffix(m.Name, openLoop), number(m.Rate))
}

// Latency is the latency distribution of a contender in an open loop, over all rounds.
type Latency struct {
	Operation string       `json:"operation"`
	Contender string       `json:"contender"`
	Rate      float64      `json:"rate"`   // operations per second
	Points    [][2]float64 `json:"points"` // percentile and milliseconds, ascending
}

// Check is a count that must be exact. If a check fails, the metrics of its scenario are worthless.
type Check struct {
	Name string `json:"name"`
	Want int64  `json:"want"`
	Got  int64  `json:"got"`
}

// OK reports whether the count is exact.
func (c Check) OK() bool { return c.Got == c.Want }

// Add adds the sample of a round to a metric. It creates the metric if necessary.
func (s *Scenario) Add(name, of, unit string, value float64) { s.AddAt(0, name, of, unit, value) }

// AddAt is Add for a metric of an open loop at a rate.
func (s *Scenario) AddAt(rate float64, name, of, unit string, value float64) {
	rate = round(rate)
	i := slices.IndexFunc(s.Metrics, func(m Metric) bool { return m.Name == name && m.Of == of && m.Rate == rate })
	if i < 0 {
		i = len(s.Metrics)
		s.Metrics = append(s.Metrics, Metric{Name: name, Of: of, Unit: unit, Rate: rate})
	}
	s.Metrics[i].Samples = append(s.Metrics[i].Samples, round(value))
}

// Metric returns a metric, at the first rate if it has one. Without such a metric it returns an empty one.
func (s *Scenario) Metric(name, of string) Metric {
	return s.find(name, of, func(float64) bool { return true })
}

// At returns the metric of an open loop at a rate, or an empty one.
func (s *Scenario) At(name, of string, rate float64) Metric {
	return s.find(name, of, func(r float64) bool { return r == round(rate) })
}

func (s *Scenario) find(name, of string, at func(rate float64) bool) Metric {
	i := slices.IndexFunc(s.Metrics, func(m Metric) bool { return m.Name == name && m.Of == of && at(m.Rate) })
	if i < 0 {
		return Metric{}
	}
	return s.Metrics[i]
}

// AddLatency adds a distribution of nanoseconds.
func (s *Scenario) AddLatency(operation, contender string, rate float64, h *hdrhistogram.Histogram) {
	s.Latencies = append(s.Latencies, Latency{operation, contender, round(rate), Points(h)})
}

// pointsPerNine is the number of points between two percentiles such as 99 and 99.9.
const pointsPerNine = 5

// Points returns percentiles of a histogram of nanoseconds, up to the last that at least one sample is above.
func Points(h *hdrhistogram.Histogram) (points [][2]float64) {
	for i := 0; ; i++ {
		above := math.Pow(10, -float64(i)/pointsPerNine)
		if above*float64(h.TotalCount()) < 1 {
			return points
		}
		percentile := 100 * (1 - above)
		points = append(points, [2]float64{math.Round(percentile*1e5) / 1e5,
			round(float64(h.ValueAtPercentile(percentile)) / 1e6)})
	}
}

// Scenario returns the result of a scenario, or an empty one.
func (r *Report) Scenario(name string) *Scenario {
	if i := slices.IndexFunc(r.Scenarios, func(s *Scenario) bool { return s.Name == name }); i >= 0 {
		return r.Scenarios[i]
	}
	return &Scenario{Name: name}
}

// Failed returns an error that names the failed checks, or nil.
func (r *Report) Failed() error {
	var errs []error
	for _, s := range r.Scenarios {
		for _, c := range s.Checks {
			if !c.OK() {
				errs = append(errs, fmt.Errorf("%s: %s: got %d, want %d", s.Name, c.Name, c.Got, c.Want))
			}
		}
	}
	return errors.Join(errs...)
}

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
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// Load reads a report that Save wrote.
func Load(path string) (*Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	r := new(Report)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read report %q: %w", path, err)
	}
	for _, s := range r.Scenarios {
		s.addRates()
	}
	return r, nil
}

// addRates adds the rates of the metrics of open loops. In reports from before 2026-11-28, only latencies have them.
func (s *Scenario) addRates() {
	for i := range s.Metrics {
		for m, k := &s.Metrics[i], 0; m.Rate == 0 && k < len(s.Latencies) && strings.HasSuffix(m.Name, openLoop); k++ {
			l := s.Latencies[k]
			if strings.HasPrefix(m.Of+" ", l.Contender+" ") && strings.Contains(m.Name, l.Operation) {
				m.Rate = l.Rate
			}
		}
	}
}

// setting describes the machine and the engines of the run.
func (r *Report) setting() []string {
	m := r.Machine
	return append([]string{m.CPU, fmt.Sprintf("%d cores", m.Cores), m.Kernel, m.Go}, r.Engines...)
}

// round rounds to four significant digits.
func round(v float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	return rounded
}

// number formats a value with three significant digits, and with all digits before the decimal point.
func number(v float64) string {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	decimals := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	return strconv.FormatFloat(v, 'f', min(decimals, 6), 64)
}
