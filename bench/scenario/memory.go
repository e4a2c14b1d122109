package scenario

import (
	"context"
	"fmt"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/report"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

const (
	// cachedLinkBytes is an upper bound of what a link takes of the edge's cache.
	cachedLinkBytes = 340
	maxIdle         = 100_000
	otherFiles      = 1000 // that the bench and an edge have open beside idle connections
)

// runMemory measures the resident memory of an edge that has all links in its cache, the cost of a redirect then, and the memory of
// idle connections.
func runMemory(ctx context.Context, r *run) error {
	on, err := r.startEngines(ctx)
	if err != nil {
		return err
	}
	visits := workload.NewVisits(workload.NewLinks(r.cfg.Links), r.cfg.Links)
	visits.WarmAll()
	r.logf("creating %d links", r.cfg.Links)
	if _, err := system.CreateLinks(ctx, on, visits.Links); err != nil {
		return err
	}
	edge, shipped, err := r.starter(on, visits).ShippingEdge(ctx, "-edge.cache-ttl", "1h", "-edge.lookup-timeout", "10s",
		"-edge.cache-bytes", fmt.Sprint(max(64<<20, r.cfg.Links*cachedLinkBytes)),
		"-edge.max-connections", fmt.Sprint(2*maxIdle), "-edge.max-connections-per-address", "0", "-edge.idle-timeout", "10m")
	if err != nil {
		return err
	}
	for visited := int64(0); visited < int64(r.cfg.Links); {
		result, err := load.Closed(ctx, edge.Target, r.cfg.Round)
		if err != nil {
			return err
		}
		visited += result.Answers
		shipped.Want += result.Answers
		r.logf("visited %d links", min(visited, int64(r.cfg.Links)))
	}
	if err := r.closedLoop(ctx, "redirect", []*contender.Contender{edge}); err != nil {
		return err
	}
	missed, err := system.ReadMetric(ctx, shipped.Base, "linkstream_edge_cache_misses_total")
	if err != nil {
		return err
	}
	// 1 if the cache holds all links.
	r.report.Add("look-ups per link", "", report.Lower, missed/float64(r.cfg.Links))
	if err := r.measureIdle(ctx, edge, shipped, visits); err != nil {
		return err
	}
	return r.checkCounter(ctx, shipped)
}

// measureIdle measures what connections without a request take of an edge's memory, and of the kernel's: both ends are on this machine.
func (r *run) measureIdle(ctx context.Context, edge *contender.Contender, shipped *system.Counter, visits *workload.Visits) error {
	files, err := proc.MaxFiles()
	if err != nil {
		return err
	}
	conns := min(r.cfg.Idle, files-otherFiles)
	if conns < 2 {
		return fmt.Errorf("the limit of %d open files is too low for idle connections", files)
	}
	addr := edge.Target.Addr
	idle := load.NewIdle(addr, visits.Uncounted(addr)(0))
	defer idle.Close()
	first := conns / 10 // after which everything that exists once is there
	if err := idle.Grow(ctx, first); err != nil {
		return err
	}
	before, err := readIdle(ctx, edge, shipped)
	if err != nil {
		return err
	}
	if err := idle.Grow(ctx, conns); err != nil {
		return err
	}
	after, err := readIdle(ctx, edge, shipped)
	if err != nil {
		return err
	}
	each := func(name, unit string, before, after float64) {
		r.report.Add(name+" per idle connection", unit, report.Lower, max(0, after-before)/float64(conns-first))
	}
	each("resident memory", "bytes", before.resident, after.resident)
	each("goroutines", "", before.goroutines, after.goroutines)
	if after.kernel > 0 {
		each("memory of the kernel, both ends,", "bytes", before.kernel, after.kernel)
	}
	r.report.Add("resident memory with all idle connections", "MiB", report.Lower, after.resident/(1<<20))
	answered, err := idle.Ask(ctx)
	if err != nil {
		return err
	}
	r.check("idle connections that answer again", int64(conns), answered)
	r.logf("%d idle connections: %.0f bytes each of the edge, which has %.0f MiB, %.0f of the kernel at both ends", conns,
		last(r.report.Metric("resident memory per idle connection")), after.resident/(1<<20),
		max(0, after.kernel-before.kernel)/float64(conns-first))
	return shipped.Settle(ctx, int64(conns)+answered)
}

// idleUsage is what idle connections use.
type idleUsage struct{ resident, goroutines, kernel float64 }

func readIdle(ctx context.Context, edge *contender.Contender, shipped *system.Counter) (u idleUsage, err error) {
	usage, err := edge.Processes[0].Usage()
	if err != nil {
		return u, err
	}
	u.resident = float64(usage.RSS)
	if kernel, err := proc.KernelMemory(); err == nil { // on Linux only
		u.kernel = float64(kernel)
	}
	u.goroutines, err = system.ReadMetric(ctx, shipped.Base, "go_goroutines")
	return u, err
}
