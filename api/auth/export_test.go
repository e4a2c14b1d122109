package auth

import "time"

var ParseBearer = parseBearer

// ReparsePasswordHash returns the hash as it was understood.
func ReparsePasswordHash(s string) (string, error) {
	h, err := parsePasswordHash(s)
	return h.String(), err
}

// MaxWaiting is maxWaiting.
const MaxWaiting = maxWaiting

// Occupy takes all that p computes with, until release is called.
func (p *Passwords) Occupy() (release func()) {
	for range cap(p.running) {
		p.running <- struct{}{}
	}
	return func() {
		for range cap(p.running) {
			<-p.running
		}
	}
}

// Waiting returns how many use p or wait for it.
func (p *Passwords) Waiting() int { return len(p.waiting) }

// MaxUses is maxUses.
const MaxUses = maxUses

// NoteUse notes a use of a token as Authenticate does.
func (a *Authenticator) NoteUse(tokenID int64, at time.Time) { a.uses.note(tokenID, at) }
