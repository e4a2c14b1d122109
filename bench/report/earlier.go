package report

import "regexp"

// earlierNames are the names of metrics in reports of November 2026 and the names that they have now.
var earlierNames = []struct {
	earlier *regexp.Regexp
	now     string
}{
	{regexp.MustCompile(`^(.+)s/s at most: `), "${1}s per second, closed loop: "},
	{regexp.MustCompile(`^CPU of a `), "CPU per "},
	{regexp.MustCompile(`^latency (p[0-9.]+) of a (.+), open loop: `), "$2 latency $1, open loop: "},
	{regexp.MustCompile(`^from the last (.+) until all is done: `), "time to drain after the last $1: "},
	{regexp.MustCompile(`^look-ups for each link$`), "look-ups per link"},
}

// rename gives metrics of earlier reports their present names, so that old and new reports can be compared.
func (r *Report) rename() {
	for i := range r.Metrics {
		for _, n := range earlierNames {
			r.Metrics[i].Name = n.earlier.ReplaceAllString(r.Metrics[i].Name, n.now)
		}
	}
}
