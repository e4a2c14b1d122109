package admission

import "github.com/VictoriaMetrics/metrics"

// NewGateOf returns a gate with so many slots.
func NewGateOf(slots int) *Gate { return newGate(slots, new(metrics.Counter)) }

// Refused returns how many requests were refused.
func (g *Gate) Refused() uint64 { return g.refused.Get() }

// Waiting returns how many requests wait for a slot or a look-up.
func (g *Gate) Waiting() int { return g.slots.Waiting() + g.lookUps.Waiting() }

// Known returns the number of credentials that the gate keeps.
func (g *Gate) Known() int { return len(g.known.until) }

// MaxKnown is maxKnown.
const MaxKnown = maxKnown

// NewRoomOf returns a room of so many bytes.
func NewRoomOf(all, ofAccount int) *Room { return newRoom(all, ofAccount) }
