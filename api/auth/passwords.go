package auth

import (
	"context"
	"runtime"
	"time"

	"linkstream/schema"
)

const (
	// maxWaiting is how many may wait for one computation each; more are refused at once.
	maxWaiting = 256
	// passwordWait bounds for how long they wait.
	passwordWait = 5 * time.Second
)

// Passwords hashes and verifies passwords, few at a time: each takes 19 MiB and a processor. Its methods may be called
// concurrently.
type Passwords struct {
	running chan struct{} // holds one for each computation under way
	waiting chan struct{} // likewise, and those that wait
	unknown string        // the hash of a password that nobody has
}

// NewPasswords returns Passwords that computes as many at a time as there are processors.
func NewPasswords() *Passwords {
	running := runtime.GOMAXPROCS(0)
	return &Passwords{
		running: make(chan struct{}, running), waiting: make(chan struct{}, running+maxWaiting),
		unknown: HashPassword(NewPassword()),
	}
}

// Hash is HashPassword. CodeUnavailable if too many others are waiting.
func (p *Passwords) Hash(ctx context.Context, password string) (hash string, err error) {
	err = p.compute(ctx, func() error { hash = HashPassword(password); return nil })
	return hash, err
}

// Verify is VerifyPassword. An empty hash stands for an account that does not exist: no password is its own, and it
// takes as long to find out. CodeUnavailable if too many others are waiting.
func (p *Passwords) Verify(ctx context.Context, hash, password string) (ok bool, err error) {
	known := hash != ""
	if !known {
		hash = p.unknown
	}
	err = p.compute(ctx, func() error { ok, err = VerifyPassword(hash, password); return err })
	return ok && known, err
}

// ErrBusy says that too many passwords are being computed.
var ErrBusy = schema.Errorf(schema.CodeUnavailable, "Too many passwords are being checked at the moment.")

func (p *Passwords) compute(ctx context.Context, f func() error) error {
	select {
	case p.waiting <- struct{}{}:
		defer func() { <-p.waiting }()
	default:
		return ErrBusy
	}
	timeout := time.NewTimer(passwordWait)
	defer timeout.Stop()
	select {
	case p.running <- struct{}{}:
		defer func() { <-p.running }()
		return f()
	case <-timeout.C:
	case <-ctx.Done():
	}
	return ErrBusy
}
