package admission

import "github.com/VictoriaMetrics/metrics"

// NewGateOf returns a gate with so many slots.
func NewGateOf(slots int) *Gate { return newGate(slots, new(metrics.Counter)) }

// Refused returns how many requests were refused.
func (g *Gate) Refused() uint64 { return g.refused.Get() }

// InLine returns the number of networks with requests in line.
func (g *Gate) InLine() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.inLine)
}

// Known returns the number of credentials that the gate keeps.
func (g *Gate) Known() int { return len(g.known.until) }

// MaxKnown is maxKnown.
const MaxKnown = maxKnown

// NewRoomOf returns a room of so many bytes.
func NewRoomOf(all, ofAccount int) *Room { return newRoom(all, ofAccount) }

// MaxPaced is maxPaced.
const MaxPaced = maxPaced

// Kept returns how many are counted.
func (p *Pace[K]) Kept() int { return len(p.used) }
