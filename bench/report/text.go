package report

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"linkstream/schema/service"
)

// Bound is a limit that a healthy build, or a machine that can judge a build, keeps to.
type Bound struct {
	Machine  bool    `json:"machine,omitempty"` // it is about the machine, not the build
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	Measured float64 `json:"measured"`
	Limit    float64 `json:"limit"`
	Least    bool    `json:"least,omitempty"` // Measured must not be below the limit; otherwise not above
}

// OK reports whether the bound holds.
func (b Bound) OK() bool { return b.Measured == b.Limit || b.Least == (b.Measured > b.Limit) }

// String returns the bound with its measured value.
func (b Bound) String() string {
	relation := "at most"
	if b.Least {
		relation = "at least"
	}
	return fmt.Sprintf("%s: %s, %s %v %s", b.Name, number(b.Measured), relation, b.Limit, b.Unit)
}

// exitCode is the exit code of a run whose counts are exact but whose build is beyond a bound.
const exitCode = 2

// Unhealthy returns an error with exit code 2 that names the bounds that the build does not keep. A slow or busy
// machine is not an error.
func (r *Report) Unhealthy() error {
	var errs []error
	for _, b := range r.Bounds {
		if !b.OK() && !b.Machine {
			errs = append(errs, errors.New(b.String()))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return &service.ExitError{Code: exitCode, Err: errors.Join(errs...)}
}

// health says in one line whether counts, build and machine are in order, and which contenders did not keep up.
func (r *Report) health() string {
	checks, judged, build, machine, saturated := 0, 0, 0, 0, ""
	for _, s := range r.Scenarios {
		checks += len(s.Checks)
		for _, l := range s.levels() {
			if l.Saturated {
				saturated += fmt.Sprintf(" SATURATED at %s/s: %s.", l.Asked, l.Of)
			}
		}
	}
	for _, b := range r.Bounds {
		if !b.Machine {
			judged++
		}
		switch {
		case b.OK():
		case b.Machine:
			machine++
		default:
			build++
		}
	}
	verdict := fmt.Sprintf("All %d counts are exact.", checks)
	if r.Failed() != nil {
		verdict = "Counts are WRONG."
	} else if r.Incomplete != "" {
		verdict = "INCOMPLETE, its counts are not compared: " + r.Incomplete + "."
	}
	verdict += saturated
	switch {
	case len(r.Bounds) == 0:
	case judged == 0 && machine > 0:
		verdict += " The machine was BUSY: repeat the run on an idle machine."
	case judged == 0:
		verdict += " The machine was quiet."
	case build > 0 && machine > 0:
		verdict += " The machine is too slow or too busy to judge the build: repeat the run on an idle machine."
	case build > 0:
		verdict += " The machine is healthy, the build is NOT."
	case machine > 0:
		verdict += " The build is healthy, although the machine is slow or busy."
	default:
		verdict += " The build and the machine are healthy."
	}
	return verdict
}

// writeSweeps writes the table of the open loops of each report.
func (s *section) writeSweeps(w io.Writer) error {
	for _, side := range s.Sides {
		if len(side.Levels) == 0 {
			continue
		}
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(table, "asked/s\t%s\t\n", strings.Join(sweepHead, "\t"))
		for _, l := range side.Levels {
			verdict := ""
			if l.Saturated {
				verdict = ", SATURATED"
			}
			fmt.Fprintf(table, "%s\t%s\t  %s%s\n", l.Asked, strings.Join(l.Cells, "\t"), l.Of, verdict)
		}
		fmt.Fprintln(table)
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// WriteText writes one report, or two side by side, as tables for a terminal.
func WriteText(w io.Writer, reports ...*Report) error {
	all := sections(reports)
	for _, s := range all {
		for i, side := range s.Sides {
			for _, line := range side.Answer {
				fmt.Fprintf(w, "%s%s: %s\n", s.Name, strings.Repeat(fmt.Sprintf(", report %d", i+1), len(reports)-1), line)
			}
		}
	}
	for _, r := range reports {
		fmt.Fprintf(w, "%s\n%s\n", r.Command, strings.Join(r.setting(), ", "))
	}
	for _, difference := range differences(reports) {
		fmt.Fprintf(w, "NOT COMPARED: %s\n", difference)
	}
	for _, s := range all {
		fmt.Fprintf(w, "\n%s: %s\n", s.Name, s.Summary)
		if err := s.writeSweeps(w); err != nil {
			return err
		}
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(table, strings.Repeat("median\trange\t", len(reports)), strings.Repeat("change\t", len(reports)-1), "\n")
		for _, row := range s.Rows {
			for _, c := range row.Cells {
				fmt.Fprintf(table, "%s\t%s\t", c.Median, c.Range)
			}
			if len(reports) > 1 {
				if row.Clear {
					row.Change = "clear " + row.Change
				}
				fmt.Fprintf(table, "%s\t", row.Change)
			}
			// tabwriter aligns cells to the right, except for the text after the last tab.
			fmt.Fprintf(table, "  %s: %s (%s)\n", row.Name, row.Of, row.Unit)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	for _, r := range reports {
		for _, b := range r.Bounds {
			verdict := "ok    "
			if !b.OK() {
				verdict = "BEYOND"
			}
			fmt.Fprintf(w, "%s  %v\n", verdict, b)
		}
		if err := r.Failed(); err != nil {
			fmt.Fprintln(w, err)
		}
		fmt.Fprintln(w, r.health())
	}
	return nil
}
