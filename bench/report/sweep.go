package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"linkstream/schema/service"
)

// The names of the metrics of an open loop, whose rate is asked for. op is the operation in the singular.

func AchievedMetric(op string) string { return op + "s per second" + openLoop }
func UnsentMetric(op string) string   { return op + "s due but not sent" + openLoop }
func CoresMetric(op string) string    { return "CPU of all " + op + "s" + openLoop }

func LatencyMetric(op string, percentile float64) string {
	return fmt.Sprintf("%s latency p%v%s", op, percentile, openLoop)
}

func SentMetric(op string, percentile float64) string {
	return fmt.Sprintf("%s latency from the actual send p%v%s", op, percentile, openLoop)
}

func DelayMetric(op string, percentile float64) string {
	return fmt.Sprintf("%s send delay p%v%s", op, percentile, openLoop)
}

const (
	openLoop = ", open loop"
	// Kept is the part of the asked rate below which a contender is saturated.
	Kept = 0.97
)

// level is a contender at one rate of an open loop.
type level struct {
	Of, Asked string
	Cells     []string // as sweepHead names them
	Saturated bool
}

// sweepHead is the columns of a sweep. Latencies count from when a request was due, in parentheses from its send.
var sweepHead = []string{"achieved/s", "p50 ms (from send)", "p99 ms (from send)", "p99.9 ms", "send delay p50, p99 ms",
	"CPU µs", "cores"}

// levels returns the rows of the sweep of an operation, by contender and by rate.
func (s *Scenario) levels() (all []level) {
	rows := slices.Clone(s.Latencies)
	slices.SortStableFunc(rows, func(a, b Latency) int {
		return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Contender, b.Contender),
			cmp.Compare(a.Rate, b.Rate))
	})
	for _, l := range rows {
		cell := func(name string) string {
			if m := s.At(name, l.Contender, l.Rate); len(m.Samples) > 0 {
				return number(m.Median())
			}
			return "-"
		}
		if cell(AchievedMetric(l.Operation)) == "-" && cell(LatencyMetric(l.Operation, 50)) == "-" {
			continue // of something else than the operation
		}
		both := func(p float64) string {
			return fmt.Sprintf("%s (%s)", cell(LatencyMetric(l.Operation, p)), cell(SentMetric(l.Operation, p)))
		}
		all = append(all, level{l.Contender + ": " + l.Operation, number(l.Rate), []string{cell(AchievedMetric(l.Operation)),
			both(50), both(99), cell(LatencyMetric(l.Operation, 99.9)),
			cell(DelayMetric(l.Operation, 50)) + ", " + cell(DelayMetric(l.Operation, 99)),
			cell("CPU per " + l.Operation + openLoop), cell(CoresMetric(l.Operation))},
			s.Saturated(l.Operation, l.Contender, l.Rate)})
	}
	return all
}

// Saturated reports whether a contender did not keep up with the rate of an open loop.
func (s *Scenario) Saturated(op, of string, rate float64) bool {
	achieved, unsent := s.At(AchievedMetric(op), of, rate), s.At(UnsentMetric(op), of, rate)
	return len(achieved.Samples) > 0 && achieved.Median() < Kept*rate || unsent.Median() > 0
}

// differences returns why two reports must not be compared: their machines, engines or the flags of their commands
// differ. Open loops are compared by rate, and the number and length of rounds only change the precision.
func differences(reports []*Report) (all []string) {
	if len(reports) < 2 {
		return nil
	}
	a, b := reports[0], reports[1]
	differ := func(what, one, other string) {
		if one != other {
			all = append(all, fmt.Sprintf("%s: %s / %s", what, cmp.Or(one, "none"), cmp.Or(other, "none")))
		}
	}
	differ("machines", fmt.Sprintf("%s, %d cores", a.Machine.CPU, a.Machine.Cores),
		fmt.Sprintf("%s, %d cores", b.Machine.CPU, b.Machine.Cores))
	differ("engines", strings.Join(a.Engines, ", "), strings.Join(b.Engines, ", "))
	differ("flags", a.load(), b.load())
	return all
}

// load returns the flags of the command that change what is measured.
func (r *Report) load() string {
	var flags []string
	for word := range strings.FieldsSeq(r.Command) {
		name, _, _ := strings.Cut(word, "=")
		if strings.HasPrefix(name, "-") && !slices.Contains([]string{"-rounds", "-round", "-duration", "-timeout", "-rate",
			"-rates", "-slo"}, name) {
			flags = append(flags, word)
		}
	}
	slices.Sort(flags)
	return strings.Join(flags, " ")
}

// Worse returns an error with exit code 2 that names the ratios of the second report that are clearly above the first
// report's ratios, by more than limit. Ratios are taken within a round, so that they depend little on the time of the
// run.
func Worse(before, after *Report, limit float64) error {
	if unlike := differences([]*Report{before, after}); len(unlike) > 0 {
		return fmt.Errorf("the reports cannot be compared: %s", strings.Join(unlike, "; "))
	}
	compared, worse := 0, []string{}
	for _, s := range sections([]*Report{before, after}) {
		for _, row := range s.Rows {
			if row.Unit != "ratio" || row.Change == "" {
				continue
			}
			compared++
			if row.Clear && row.grown > limit {
				worse = append(worse, fmt.Sprintf("%s: %s: %s: %s", s.Name, row.Name, row.Of, row.Change))
			}
		}
	}
	if compared == 0 {
		return fmt.Errorf("the reports have no ratio of at least %d rounds in common", clearRounds)
	}
	if len(worse) == 0 {
		return nil
	}
	return &service.ExitError{Code: exitCode, Err: fmt.Errorf("clearly worse:\n%s", strings.Join(worse, "\n"))}
}
