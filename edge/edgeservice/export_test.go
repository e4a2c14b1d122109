package edgeservice

import "linkstream/schema"

// GCPercent is gcPercent for tests.
func GCPercent(live uint64) int { return gcPercent(live) }

// StopCollecting is stopCollecting for tests.
var StopCollecting = stopCollecting

// Unbounded calls f as if BoundGarbage had not been called.
func Unbounded(f func()) {
	defer bounds.Store(bounds.Swap(false))
	f()
}

// Follows reports whether an edge follows the changes of links.
func (s *Service) Follows() bool { return s.resolver.Position().Topic != (schema.ChangePosition{}) }
