package edgeservice

import "linkstream/schema"

// GCPercent is gcPercent for tests.
var GCPercent = gcPercent

// Follows reports whether an edge follows the changes of links.
func (s *Service) Follows() bool { return s.resolver.Position() != (schema.ChangePosition{}) }
