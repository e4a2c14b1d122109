package schema

import "time"

// LinkPosition is a position in a list of links: right after a link. The zero value is the start.
type LinkPosition struct {
	Ordinal   int64     // of the link
	DeletedAt time.Time // of the link, in a list of deleted links
}

// PositionOf returns the position after a link.
func PositionOf(l Link) LinkPosition {
	if l.Ordinal > 0 {
		return LinkPosition{Ordinal: l.Ordinal}
	}
	return LinkPosition{Ordinal: l.Ordinal, DeletedAt: l.UpdatedAt}
}

// LinkChangePosition is a position in the changes of an account's links. Links that were made and not changed since
// come in the order of their ordinals, all others in the order of the numbers that NumberChanges gives.
type LinkChangePosition struct {
	Since           time.Time // see FirstOrdinal
	Ordinal, Number int64     // the last ones that were read

	Begun bool // the next two are known
	// The last ones of the account when reading began: up to these, changes with an UpdatedAt before Since are left out.
	FirstOrdinal, FirstNumber int64
}
