package scenario

import (
	"linkstream/bench/contender"
	"linkstream/bench/report"
	"linkstream/bench/system"
)

// bound is a limit of a metric.
type bound struct {
	machine  bool   // it is about the machine, not the build
	scenario string // "": each
	name, of string
	limit    float64
	least    bool // the median must not be below the limit; otherwise not above
	spread   bool // limits the range of the rounds relative to the median, instead of the median
}

// healthy returns the bounds of a healthy build and a healthy machine. They leave room for short rounds on a machine
// with two cores: they find a broken build, not a slightly slower one.
func healthy(cfg Config) []bound {
	whole, insert := "standalone", "bare SQLite insert"
	if cfg.System.Engines == system.Real {
		whole, insert = "services", "bare pgx insert"
	}
	cpu := func(scenario, op, of string, limit float64) bound {
		return bound{scenario: scenario, name: cpuMetric(op), of: of, limit: limit}
	}
	const bare = contender.Bare
	all := []bound{
		{machine: true, scenario: "redirect", name: cpuMetric("redirect"), of: bare, limit: 0.5, spread: true},
		{machine: true, scenario: "redirect", name: rateMetric("redirect"), of: bare, limit: 20_000, least: true},
		{machine: true, scenario: "redirect", name: report.LatencyMetric("redirect", 99), of: bare, limit: 5},
		{machine: true, scenario: "create", name: rateMetric("link"), of: insert, limit: 100, least: true},
		{machine: true, name: othersMetric, of: machineName, limit: 5},
		{machine: true, name: stealMetric, of: machineName, limit: 2},
		cpu("redirect", "redirect", "edge, spooling / "+bare, 1.25),
		cpu("redirect", "redirect", "edge, shipping / "+bare, 1.5),
		cpu("redirect", "redirect", whole+" / "+bare, 2.5),
		{scenario: "redirect", name: report.LatencyMetric("redirect", 99), of: whole, limit: 25},
		cpu("connections", "redirect", "edge, spooling / "+bare, 1.25),
		cpu("connections", "HTTPS redirect", "edge, spooling, full TLS handshake / "+bare+", full TLS handshake", 1.25),
		cpu("connections", "redirect", whole+" / "+bare, 1.75),
		cpu("pipeline", "counted click", "worker / bare clickhouse-go insert", 3.5),
		{scenario: "pipeline", name: "freshness p99", of: whole, limit: 2000},
		cpu("create", "link", whole+" / "+insert, 2.5),
		cpu("read", "list call", "last page / first page", 1.75),
		{scenario: "read", name: report.LatencyMetric("stats call", 99), of: "statistics, any link", limit: 100},
		{scenario: "read", name: report.LatencyMetric("report", 99), of: "month, any link", limit: 500},
	}
	for _, a := range heavyReads(new(system.API), "", nil, nil) {
		for _, op := range []string{"shorten", "stats", "list", "report", "shared report"} {
			all = append(all, bound{scenario: "abuse", name: op + " latency p99", of: a.name + " / quiet", limit: 3})
		}
	}
	return all
}

// bounds judges the metrics of a report: the machine's, and with build also the build's. Bounds of metrics that it does
// not have are left out.
func bounds(r *report.Report, cfg Config, build bool) (all []report.Bound) {
	for _, b := range healthy(cfg) {
		if !b.machine && !build {
			continue
		}
		for _, s := range r.Scenarios {
			if m := s.Metric(b.name, b.of); (b.scenario == s.Name || b.scenario == "") && len(m.Samples) > 0 {
				all = append(all, b.judge(s.Name, m))
			}
		}
	}
	return all
}

// judge compares a metric of a scenario with the bound.
func (b bound) judge(scenario string, m report.Metric) report.Bound {
	judged := report.Bound{Machine: b.machine, Name: scenario + ": " + b.name + ": " + b.of, Unit: m.Unit,
		Measured: m.Median(), Limit: b.limit, Least: b.least}
	if b.spread {
		low, high := m.Range()
		judged.Name, judged.Unit, judged.Measured = judged.Name+", range relative to the median", "ratio",
			(high-low)/m.Median()
	}
	return judged
}
