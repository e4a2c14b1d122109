package auth

import "time"

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

// Occupy takes every slot of the pool until release is called.
func (p *PasswordPool) Occupy() (release func()) {
	for range cap(p.running) {
		p.running <- struct{}{}
	}
	return func() {
		for range cap(p.running) {
			<-p.running
		}
	}
}

// Waiting returns the number of calls that wait.
func (p *PasswordPool) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
}

// PasswordSlots returns how many passwords a pool computes at the same time on so many CPUs.
func PasswordSlots(cpus int) int { return cap(newPasswordPool(cpus).running) }

// MaxUses is maxUses.
const MaxUses = maxUses

// NoteUse notes the use of a token as Authenticate does.
func (a *Authenticator) NoteUse(tokenID int64, at time.Time) { a.uses.note(tokenID, at) }
