package report

import (
	"fmt"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// percentiles are the metrics of latency that an open loop has for each round.
var percentiles = [...]float64{50, 99, 99.9}

// Latency is the latency distribution of an operation over all rounds. Histograms hold nanoseconds in HdrHistogram's
// interchange format: V2, compressed, base64.
type Latency struct {
	Name      string `json:"name"`
	Histogram string `json:"histogram"`
	// Only of open loops:
	Operation string   `json:"operation,omitempty"`
	Contender string   `json:"contender,omitempty"`
	Rate      float64  `json:"rate,omitempty"`   // per second
	Rounds    []string `json:"rounds,omitempty"` // histograms
}

// AddLatency adds a distribution of nanoseconds.
func (r *Report) AddLatency(name string, h *hdrhistogram.Histogram) error {
	encoded, err := encode(name, h)
	r.Latencies = append(r.Latencies, Latency{Name: name, Histogram: encoded})
	return err
}

// AddOpenLoop adds the latencies of an operation in the rounds of an open loop, and their percentiles as metrics.
func (r *Report) AddOpenLoop(operation, contender string, rate float64, rounds []*hdrhistogram.Histogram) error {
	l := Latency{Name: fmt.Sprintf("%s, %.0f/s", contender, rate), Operation: operation, Contender: contender, Rate: rate}
	var all *hdrhistogram.Histogram
	for _, h := range rounds {
		for _, p := range percentiles {
			r.Add(fmt.Sprintf("%s latency p%v, open loop: %s", operation, p, contender), "ms", Lower,
				float64(h.ValueAtPercentile(p))/1e6)
		}
		encoded, err := encode(l.Name, h)
		if err != nil {
			return err
		}
		l.Rounds = append(l.Rounds, encoded)
		if all == nil {
			all = hdrhistogram.Import(h.Export())
		} else {
			all.Merge(h)
		}
	}
	if all == nil {
		return nil
	}
	var err error
	l.Histogram, err = encode(l.Name, all)
	r.Latencies = append(r.Latencies, l)
	return err
}

func encode(name string, h *hdrhistogram.Histogram) (string, error) {
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("encode histogram %q: %w", name, err)
	}
	return string(encoded), nil
}

// decode returns the histogram of all rounds.
func (l Latency) decode() (*hdrhistogram.Histogram, error) { return decode(l.Name, l.Histogram) }

func decode(name, encoded string) (*hdrhistogram.Histogram, error) {
	h, err := hdrhistogram.Decode([]byte(encoded))
	if err != nil {
		return nil, fmt.Errorf("decode histogram %q: %w", name, err)
	}
	return h, nil
}

// subject returns the name of a latency without its rate, which follows the last comma.
func (l Latency) subject() string {
	if i := strings.LastIndex(l.Name, ", "); i >= 0 && strings.HasSuffix(l.Name, "/s") {
		return l.Name[:i]
	}
	return l.Name
}
