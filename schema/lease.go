package schema

import "context"

// MaxClickLimit bounds the limit of a link.
const MaxClickLimit = 1_000_000_000

// A lease takes one LeaseShare-th of the clicks that nobody has, at least one and at most MaxLease. So what an edge has
// and does not use keeps few visitors of other edges away.
const (
	LeaseShare = 32
	MaxLease   = 10_000
)

// LimitLease is the share that one process of an edge, its holder, has in the clicks of a link with a limit.
type LimitLease struct {
	LinkID int64
	Call   int64 // number of the call that states the lease: the holder gives each call a higher one
	// Granted is the maximum number of clicks that the holder may have recorded, over all its grants. A negative value in
	// a call means that the holder has forgotten it, and has no clicks left to spend; the store then sets it to the number
	// of spent clicks.
	Granted int64
	Spent   int64 // clicks that the holder has recorded
}

// LimitUse says how much of a link's limit is used. Clicks that are granted and not spent are held by an edge.
type LimitUse struct{ Granted, Spent int64 }

// LeaseStore divides the clicks that links with limits have left among edges. At any time the clicks of a link that
// holders are granted, plus the clicks that ended holders have spent, are at most its limit, unless the limit has been
// lowered. A call that arrives after a later one of the same holder for the same link, or after EndLeases, changes
// nothing.
type LeaseStore interface {
	// AddLeaseHolder lets a holder take leases. Idempotent.
	AddLeaseHolder(ctx context.Context, holder Incarnation) error
	// TakeLease states the holder's lease of a link and grants it more clicks, if any are left. It returns the lease with
	// the new Granted, and the store's Spent. CodeNotFound if there is no such link or holder, or a later call was faster.
	TakeLease(ctx context.Context, holder Incarnation, lease LimitLease) (LimitLease, error)
	// StateLeases states what the holder has of links, at most 1000, for which it has leases. It grants nothing. Clicks
	// that are not granted any more are left for others.
	StateLeases(ctx context.Context, holder Incarnation, leases []LimitLease) error
	// EndLeases ends all leases of a holder that is gone. spent has the clicks that it has spent, by link; if the store
	// has a higher number, that one stands. Idempotent.
	EndLeases(ctx context.Context, holder Incarnation, spent map[int64]int64) error
	// LimitUse returns the use of the limits of links. A link that no edge has asked for has none.
	LimitUse(ctx context.Context, links []int64) (map[int64]LimitUse, error)
}
