package report

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"linkstream/schema/service"
)

// exitCode is the exit code of a program whose metrics are beyond a limit, although its checks are right.
const exitCode = 2

// Limits are bounds for the metrics of a report.
type Limits struct {
	Above, Below []Limit // a greater or smaller median than the limit's fails
	Worse        float64 // percent by which a metric may be worse than in another report; 0: any
}

// Limit is a bound for the median of a metric.
type Limit struct {
	Metric string
	Value  float64
}

// RegisterFlags binds the limits to flags, which may be repeated.
func (l *Limits) RegisterFlags(fs *flag.FlagSet) {
	fs.Func("fail-above", "`METRIC=NUMBER`: exit with code 2 if the median of the metric is above the number; repeatable",
		func(s string) error { return appendLimit(&l.Above, s) })
	fs.Func("fail-below", "`METRIC=NUMBER`: exit with code 2 if the median of the metric is below the number; repeatable",
		func(s string) error { return appendLimit(&l.Below, s) })
	fs.Float64Var(&l.Worse, "fail-worse", l.Worse,
		"with -compare: exit with code 2 if a metric is worse by more than this `percentage`, except those of bare servers and loops; 0: never")
}

func appendLimit(limits *[]Limit, s string) error {
	i := strings.LastIndexByte(s, '=')
	if i < 1 {
		return errors.New("want METRIC=NUMBER")
	}
	value, err := strconv.ParseFloat(s[i+1:], 64)
	if err != nil {
		return fmt.Errorf("want METRIC=NUMBER: %w", err)
	}
	*limits = append(*limits, Limit{s[:i], value})
	return nil
}

// Check returns an error that names every metric beyond its limit, and carries the exit code 2. A metric that the report
// does not have is an error as well, because its limit would never fail.
func (l *Limits) Check(r *Report) error {
	var errs []error
	check := func(limit Limit, beyond func(median float64) bool) {
		m := r.Metric(limit.Metric)
		switch median := m.Median(); {
		case len(m.Samples) == 0:
			errs = append(errs, fmt.Errorf("limit of %q: the report does not have this metric", limit.Metric))
		case beyond(median):
			errs = append(errs, fmt.Errorf("%s is %s %s, beyond the limit %v", m.Name, number(median), m.Unit, limit.Value))
		}
	}
	for _, limit := range l.Above {
		check(limit, func(median float64) bool { return median > limit.Value })
	}
	for _, limit := range l.Below {
		check(limit, func(median float64) bool { return median < limit.Value })
	}
	return exit(errs)
}

// exit returns an error with the exit code 2, or nil if there are no errors.
func exit(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return &service.ExitError{Code: exitCode, Err: errors.Join(errs...)}
}

// ours reports whether a metric depends on the build. Those of bare servers and loops show what the machine did at that time.
func ours(metric string) bool {
	measured := metric[strings.LastIndex(metric, ": ")+1:]
	return !strings.HasPrefix(measured, " bare ") && !strings.HasPrefix(measured, " nginx") // "bare, on edge/eventloop" has code of ours
}

// CheckChanges returns an error that names every metric that has become too much worse, and carries the exit code 2. Metrics that do
// not depend on the build are left out.
func (l *Limits) CheckChanges(changes []Change) error {
	var errs []error
	for _, c := range changes {
		if l.Worse == 0 || c.Verdict != Worse || !ours(c.New.Name) {
			continue
		}
		percent, known := c.Percent()
		percent = max(percent, -percent)
		switch {
		case !known:
			errs = append(errs, fmt.Errorf("%s was 0, and is worse now", c.New.Name))
		case percent > l.Worse:
			errs = append(errs, fmt.Errorf("%s is worse by %.1f %%, beyond the limit %v %%", c.New.Name, percent, l.Worse))
		}
	}
	return exit(errs)
}
