package scenario

import (
	"fmt"

	"linkstream/bench/contender"
	"linkstream/bench/report"
	"linkstream/bench/system"
)

// bound is a bound for a metric of a report of several scenarios.
type bound struct {
	subject report.Subject
	name    string
	metric  string // with the scenario
	value   float64
	below   bool // the metric must not be below the value; otherwise not above
	spread  bool // bounds the range of the rounds relative to the median, instead of the median
}

// bounds returns what a healthy build and a healthy machine keep to. They leave room for short rounds on a machine with
// two cores: they find what is broken, not what is a little slower. For that, compare two reports.
func bounds(cfg Config) []bound {
	// The worker counts into SQLite, which no bare loop does: it takes 6 to 8 times what a fetch does.
	whole, insert, counted, counting := "standalone", "bare SQLite insert", "bare kafka-go fetch", 12.0
	if cfg.System.Engines == system.Real {
		whole, insert, counted, counting = "services", "bare pgx insert", "bare clickhouse-go insert", 3.5
	}
	cpu := func(scenario, op, name string, value float64) bound {
		return bound{subject: report.Build, name: fmt.Sprintf("CPU per %s (%s), %s", op, scenario, name),
			metric: fmt.Sprintf("%s: CPU per %s: %s", scenario, op, name), value: value}
	}
	bare := "redirect: CPU per redirect: " + contender.BareNet
	return []bound{
		{subject: report.Machine, name: "CPU per redirect of a bare server, range of the rounds relative to their median", metric: bare,
			value: 0.3, spread: true},
		{subject: report.Machine, name: "redirects per second of a bare server",
			metric: "redirect: " + rateMetric("redirect", contender.BareNet), value: 20_000, below: true},
		{subject: report.Machine, name: "latency p99 of a bare server at half of the closed loop's rate",
			metric: "redirect: redirect latency p99, open loop: " + contender.BareNet, value: 5},
		{subject: report.Machine, name: "synced inserts per second of a bare loop",
			metric: "shorten: " + rateMetric("link", insert), value: 100, below: true},
		cpu("redirect", "redirect", "edge, spooling / "+contender.BareNet, 1.25),
		cpu("redirect", "redirect", "edge, spooling, links with rules / "+contender.BareNet, 1.25),
		cpu("redirect", "redirect", "edge, spooling, links with rules / edge, spooling", 1.25),
		cpu("redirect", "redirect", "edge, shipping / "+contender.BareNet, 1.5),
		cpu("redirect", "redirect", whole+" / "+contender.BareNet, 2.5),
		{subject: report.Build, name: "redirect latency p99 of " + whole + " at half of the closed loop's rate",
			metric: "redirect: redirect latency p99, open loop: " + whole, value: 25},
		cpu("connections", "redirect", "edge, spooling / "+contender.BareNet, 1.25),
		cpu("connections", "redirect", "edge, spooling, full TLS handshake / "+contender.BareNet+", full TLS handshake", 1.25),
		cpu("connections", "redirect", whole+" / "+contender.BareNet, 1.75),
		cpu("pipeline", "shipped click", "shipper / bare kafka-go produce", 1),
		cpu("pipeline", "counted click", "worker / "+counted, counting),
		{subject: report.Build, name: "time until a click is in the list, p99", metric: "freshness: freshness p99", value: 2000},
		cpu("shorten", "link", whole+" / "+insert, 2.5),
		cpu("links", "list call", fmt.Sprintf("page %d / page 1", lastPage(cfg.Links)), 1.75),
		{subject: report.Build, name: "latency p99 of statistics", metric: "stats: stats call latency p99, open loop: any link",
			value: 100},
		{subject: report.Build, name: "look-ups per cached link", metric: "memory: look-ups per link", value: 1.05},
		{subject: report.Build, name: "resident memory of an edge per idle connection", metric: "memory: resident memory per idle connection",
			value: 1024},
		{subject: report.Build, name: "goroutines of an edge per idle connection", metric: "memory: goroutines per idle connection",
			value: 0.01},
	}
}

// health judges the metrics of a report. Bounds of metrics that it does not have are left out.
func health(r *report.Report, cfg Config) (all []report.Health) {
	for _, b := range bounds(cfg) {
		m := r.Metric(b.metric)
		if len(m.Samples) == 0 {
			continue
		}
		h := report.Health{Subject: b.subject, Name: b.name, Unit: m.Unit, Measured: m.Median(), Bound: b.value, Below: b.below}
		if b.spread {
			low, high := m.Range()
			h.Unit, h.Measured = "ratio", (high-low)/m.Median()
		}
		all = append(all, h)
	}
	return all
}
