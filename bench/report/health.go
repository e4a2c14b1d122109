package report

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
)

// Health is a metric that tells whether a build, or the machine, is as it should be.
type Health struct {
	Subject  Subject `json:"subject"`
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	Measured float64 `json:"measured"`
	Bound    float64 `json:"bound"`
	Below    bool    `json:"below,omitempty"` // Measured must not be below the bound; otherwise not above
}

// Subject is what a Health is about.
type Subject string

// The subjects.
const (
	Build   Subject = "build"
	Machine Subject = "machine"
)

// OK reports whether the metric is within its bound.
func (h Health) OK() bool {
	if h.Below {
		return h.Measured >= h.Bound
	}
	return h.Measured <= h.Bound
}

// writeHealth writes the health of a report as a table.
func (r *Report) writeHealth(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\tmeasured\tbound\t\n")
	for _, h := range r.Health {
		verdict, relation := "ok", "<="
		if !h.OK() {
			verdict = "FAILED"
		}
		if h.Below {
			relation = ">="
		}
		unit := ""
		if h.Unit != "" {
			unit = " (" + h.Unit + ")"
		}
		fmt.Fprintf(table, "%s\t%s\t%s %v\t  %s: %s%s\n", verdict, number(h.Measured), relation, h.Bound, h.Subject, h.Name, unit)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s\n", r.healthSummary())
	return nil
}

// healthSummary says in one line whether build and machine are healthy.
func (r *Report) healthSummary() string {
	exact := fmt.Sprintf("All %d counts are exact.", len(r.Checks))
	if err := r.Failed(); err != nil {
		exact = "Counts are WRONG."
	}
	build, machine := r.beyond(Build), r.beyond(Machine)
	switch {
	case len(machine) > 0 && len(build) > 0:
		return exact + " The machine is too slow or too busy to judge the build: repeat the run on an idle machine."
	case len(machine) > 0:
		return exact + " The build is healthy, although the machine is slow or busy."
	case len(build) > 0:
		return exact + " The machine is healthy, the build is NOT."
	}
	return exact + " The build and the machine are healthy."
}

// beyond returns the metrics of a subject that are beyond their bounds.
func (r *Report) beyond(s Subject) (beyond []Health) {
	for _, h := range r.Health {
		if h.Subject == s && !h.OK() {
			beyond = append(beyond, h)
		}
	}
	return beyond
}

// Unhealthy returns an error with the exit code 2 that names the metrics of the build that are beyond their bounds. A
// machine that is slow or busy is not an error.
func (r *Report) Unhealthy() error {
	var errs []error
	for _, h := range r.beyond(Build) {
		errs = append(errs, errors.New(h.Name+" is beyond its bound"))
	}
	return exit(errs)
}
