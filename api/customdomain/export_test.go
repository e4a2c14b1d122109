package customdomain

import (
	"context"
	"time"
)

var (
	ReadServers = readServers
	MatchTXT    = (*Verifier).matchTXT
)

// SetClock replaces the clock of a manager.
func (m *Manager) SetClock(now func() time.Time) { m.now = now }

// CheckDue checks the domains that are due, as Run does.
func (m *Manager) CheckDue(ctx context.Context) error { return m.checkDue(ctx) }
