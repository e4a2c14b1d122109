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
	Load     Load
	Progress func(format string, args ...any)
}
