package auth

import (
	"context"
	"time"

	"linkstream/schema/turns"
)

var ParseBearer = parseBearer

// ReparsePasswordHash formats the parsed hash again.
func ReparsePasswordHash(s string) (string, error) {
	h, err := parsePasswordHash(s)
	return h.String(), err
}

// Limits of a PasswordPool.
const (
	MaxWaiting     = maxWaiting
	MaxWaitingEach = maxWaitingEach
)

// occupant is the client that Occupy takes slots for.
var occupant = turns.Item(1)

// Occupy takes every slot of the pool until release is called.
func (p *PasswordPool) Occupy() (release func()) {
	slots := p.takeAll()
	return func() {
		for range slots {
			p.turns.Leave(occupant)
		}
	}
}

// takeAll takes every slot, and returns their number.
func (p *PasswordPool) takeAll() (slots int) {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	for p.turns.Take(done, occupant, 1) == nil {
		slots++
	}
	return slots
}

// Waiting returns the number of calls that wait.
func (p *PasswordPool) Waiting() int { return p.turns.Waiting() }

// PasswordSlots returns how many passwords a pool computes at the same time on a number of CPUs.
func PasswordSlots(cpus int) int { return newPasswordPool(cpus).takeAll() }

// MaxUses is maxUses.
const MaxUses = maxUses

// NoteUse notes the use of a token as Authenticate does.
func (a *Authenticator) NoteUse(tokenID int64, at time.Time) { a.uses.note(tokenID, at) }
