package contender

import (
	"linkstream/bench/proc"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

// Starter starts the servers that answer redirects.
type Starter struct {
	Group    *proc.Group
	Engines  system.Engines
	Visits   *workload.Visits
	Conns    int // of the load on each server
	Progress func(format string, args ...any)
}
