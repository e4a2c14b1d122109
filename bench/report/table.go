package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteTable writes a table for a terminal: the health of the report if it has one, otherwise the metrics and the checks.
func (r *Report) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%s\n\n", r.Command, strings.Join(r.setting(), ", "))
	if len(r.Health) > 0 {
		return r.writeHealth(w)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "median\tmin\tmax\trounds\t\n")
	for _, m := range r.Metrics {
		low, high := m.Range()
		// tabwriter aligns cells to the right, except for the text after the last tab, which is the name.
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t  %s (%s)\n",
			number(m.Median()), number(low), number(high), len(m.Samples), m.Name, m.Unit)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, c := range r.Checks {
		verdict := "ok"
		if !c.OK() {
			verdict = "FAILED"
		}
		fmt.Fprintf(w, "%-6s  %s: %d of %d\n", verdict, c.Name, c.Got, c.Want)
	}
	return nil
}

// setting describes the machine and the engines of the run.
func (r *Report) setting() []string {
	m := r.Machine
	return append([]string{m.CPU, fmt.Sprintf("%d cores", m.Cores), m.Kernel, m.Go}, r.Engines...)
}

// number formats a value with three significant digits, and with all digits before the decimal point.
func number(v float64) string {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	decimals := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	return strconv.FormatFloat(v, 'f', min(decimals, 6), 64)
}
