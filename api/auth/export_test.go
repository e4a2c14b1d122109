package auth

import "time"

var ParseBearer = parseBearer

// ReparsePasswordHash formats the parsed hash again.
func ReparsePasswordHash(s string) (string, error) {
	h, err := parsePasswordHash(s)
	return h.String(), err
}

// MaxWaiting is maxWaiting.
const MaxWaiting = maxWaiting

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

// Waiting returns the number of calls that compute or wait.
func (p *PasswordPool) Waiting() int { return len(p.admitted) }

// MaxUses is maxUses.
const MaxUses = maxUses

// NoteUse notes the use of a token as Authenticate does.
func (a *Authenticator) NoteUse(tokenID int64, at time.Time) { a.uses.note(tokenID, at) }
