package service

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// Describe sets the HELP text of a metric in set: a sentence, with the unit if the name does not have it.
func Describe(set *metrics.Set, name, help string) {
	set.RegisterMetricsWriter(func(w io.Writer) { fmt.Fprintf(w, "# HELP %s %s\n", name, help) })
}

// NewCounter adds a counter to set, with the HELP text of its metric. The name may have labels.
func NewCounter(set *metrics.Set, name, help string) *metrics.Counter {
	metric, _, _ := strings.Cut(name, "{")
	Describe(set, metric, help)
	return set.NewCounter(name)
}

// NewGauge is NewCounter for a gauge. If value is not nil, it returns the gauge's value.
func NewGauge(set *metrics.Set, name, help string, value func() float64) *metrics.Gauge {
	metric, _, _ := strings.Cut(name, "{")
	Describe(set, metric, help)
	return set.NewGauge(name, value)
}

// family holds the samples of one metric with all label values.
type family struct {
	help, kind string
	samples    []string
}

// writeMetrics writes the metrics of the process and of sets in Prometheus's text format. The format requires that the
// samples of a family follow each other, after its HELP and TYPE.
func writeMetrics(w io.Writer, sets []*metrics.Set) {
	metrics.ExposeMetadata(true) // makes the library write types
	var raw bytes.Buffer
	metrics.WriteProcessMetrics(&raw)
	metrics.WriteFDMetrics(&raw)
	for _, set := range sets {
		set.WritePrometheus(&raw)
	}
	var names []string
	families := map[string]*family{}
	named := func(name string) *family {
		if families[name] == nil {
			families[name] = &family{}
			names = append(names, name)
		}
		return families[name]
	}
	current := ""
	for line := range strings.Lines(raw.String()) {
		name, help, described := cutMeta(line, "# HELP ")
		typed, kind, isType := cutMeta(line, "# TYPE ")
		switch {
		case described:
			if help != "" { // the library's are empty
				named(name).help = help
			}
		case isType:
			if strings.HasSuffix(typed, "_total") { // the library calls it a gauge if its value comes from a function
				kind = "counter"
			}
			current = typed
			named(typed).kind = kind
		default:
			f := named(sampleFamily(line, current))
			f.samples = append(f.samples, line)
		}
	}
	for _, name := range names {
		families[name].write(w, name)
	}
}

func (f *family) write(w io.Writer, name string) {
	if len(f.samples) == 0 {
		return
	}
	if f.help != "" {
		fmt.Fprintf(w, "# HELP %s %s\n", name, f.help)
	}
	if f.kind != "" {
		fmt.Fprintf(w, "# TYPE %s %s\n", name, f.kind)
	}
	for _, sample := range f.samples {
		io.WriteString(w, sample)
	}
}

// cutMeta splits a line of metadata into the name of the metric and the text.
func cutMeta(line, prefix string) (name, text string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), prefix)
	name, text, _ = strings.Cut(rest, " ")
	return name, text, ok
}

// sampleFamily returns the family of a sample that follows the metadata of the family current. The samples of
// histograms and summaries have suffixes.
func sampleFamily(line, current string) string {
	name := line[:max(0, strings.IndexAny(line, "{ "))]
	if suffix, ok := strings.CutPrefix(name, current); ok && current != "" {
		switch suffix {
		case "_bucket", "_sum", "_count":
			return current
		}
	}
	return name
}

// bounds are the upper bounds of a Histogram's buckets: from a cached redirect to the patience of clients.
var bounds = [...]time.Duration{
	5 * time.Microsecond, 20 * time.Microsecond, 100 * time.Microsecond, 500 * time.Microsecond, time.Millisecond,
	2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, 10 * time.Second,
}

// Histogram counts durations in fixed buckets, which Prometheus can aggregate over services. Its methods may be called
// concurrently.
type Histogram struct {
	labels  string                         // such as `route="/x"`
	buckets [len(bounds) + 1]atomic.Uint64 // the last one is for durations above all bounds
	nanos   atomic.Int64
}

// Observe counts a duration. It does not allocate.
func (h *Histogram) Observe(d time.Duration) {
	i := 0
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	h.buckets[i].Add(1)
	h.nanos.Add(int64(d))
}

// Histograms is a family of histograms with different labels.
type Histograms struct {
	name string

	mu  sync.Mutex
	all []*Histogram
}

// NewHistograms adds a family of histograms to set.
func NewHistograms(set *metrics.Set, name, help string) *Histograms {
	f := &Histograms{name: name}
	Describe(set, name, help)
	set.RegisterMetricsWriter(f.write)
	return f
}

// NewHistogram adds a histogram without labels to set.
func NewHistogram(set *metrics.Set, name, help string) *Histogram {
	return NewHistograms(set, name, help).With("")
}

// With returns the histogram with these labels, such as `route="/x"`. It creates the histogram if it does not exist.
func (f *Histograms) With(labels string) *Histogram {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.all {
		if h.labels == labels {
			return h
		}
	}
	h := &Histogram{labels: labels}
	f.all = append(f.all, h)
	return h
}

func (f *Histograms) write(w io.Writer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintf(w, "# TYPE %s histogram\n", f.name)
	for _, h := range f.all {
		h.write(w, f.name)
	}
}

func (h *Histogram) write(w io.Writer, name string) {
	first, alone := "", ""
	if h.labels != "" {
		first, alone = h.labels+",", "{"+h.labels+"}"
	}
	count := uint64(0)
	for i := range bounds {
		count += h.buckets[i].Load()
		fmt.Fprintf(w, "%s_bucket{%sle=\"%g\"} %d\n", name, first, bounds[i].Seconds(), count)
	}
	count += h.buckets[len(bounds)].Load()
	fmt.Fprintf(w, "%s_bucket{%sle=\"+Inf\"} %d\n", name, first, count)
	fmt.Fprintf(w, "%s_sum%s %g\n%s_count%s %d\n", name, alone, time.Duration(h.nanos.Load()).Seconds(), name,
		alone, count)
}
