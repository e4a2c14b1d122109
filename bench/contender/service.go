package contender

import (
	"linkstream/bench/load"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

// Visited returns the whole system as its visitors use it. It has settled when all clicks are counted.
func Visited(s *system.Service, visits *workload.Visits, l Load) *Contender {
	c := l.Server(s.Name, s.Edge, visits.Counted(s.Edge), s.AtEdge...)
	if s.Counted != nil {
		c.Settle = s.Counted.Settle
	}
	return c
}

// Called returns the whole system as the clients of its API use it.
func Called(name string, s *system.Service, l Load, source func(conn int) load.Source) *Contender {
	return l.Server(name, s.API.Addr(), source, s.AtAPI...)
}
