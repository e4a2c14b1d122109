package request

import "github.com/VictoriaMetrics/metrics"

// NewAnonymousOf returns an Anonymous with a number of places.
func NewAnonymousOf(places int) *Anonymous { return newAnonymous(places, new(metrics.Counter)) }

// Refused returns how many requests were refused.
func (a *Anonymous) Refused() uint64 { return a.refused.Get() }

// Waiting returns how many requests wait for a place or a look-up.
func (a *Anonymous) Waiting() int { return a.places.Waiting() + a.lookUps.Waiting() }

// Known returns the number of credentials that are kept.
func (a *Anonymous) Known() int { return len(a.known.until) }

// MaxKnown is maxKnown.
const MaxKnown = maxKnown
