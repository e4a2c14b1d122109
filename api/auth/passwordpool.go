package auth

import (
	"context"
	"time"

	"linkstream/schema"
	"linkstream/schema/service"
)

const (
	// maxWaiting bounds the calls that wait for a free CPU. Further calls are refused at once.
	maxWaiting = 256
	// maxWait bounds how long they wait.
	maxWait = 5 * time.Second
)

// PasswordPool hashes and verifies passwords, at most one per CPU at a time, because each computation takes 19 MiB and a
// CPU for 20 ms. Its methods may be called concurrently.
type PasswordPool struct {
	running     chan struct{} // one element per computation
	admitted    chan struct{} // one element per computation and per call that waits for one
	unknownHash string        // the hash of a random password; stands in for accounts that do not exist
}

// NewPasswordPool returns a pool with one slot per CPU.
func NewPasswordPool() *PasswordPool {
	cpus := service.CPUs()
	return &PasswordPool{
		running: make(chan struct{}, cpus), admitted: make(chan struct{}, cpus+maxWaiting),
		unknownHash: HashPassword(NewPassword()),
	}
}

// Hash is HashPassword in the pool. ErrBusy if the pool has no room.
func (p *PasswordPool) Hash(ctx context.Context, password string) (hash string, err error) {
	err = p.compute(ctx, func() error { hash = HashPassword(password); return nil })
	return hash, err
}

// Verify is VerifyPassword in the pool. An empty hash stands for an account that does not exist: Verify takes as long and
// returns false. ErrBusy if the pool has no room.
func (p *PasswordPool) Verify(ctx context.Context, hash, password string) (ok bool, err error) {
	known := hash != ""
	if !known {
		hash = p.unknownHash
	}
	err = p.compute(ctx, func() error { ok, err = VerifyPassword(hash, password); return err })
	return ok && known, err
}

// ErrBusy means that too many passwords are being computed. Its code is CodeUnavailable.
var ErrBusy = schema.ClientErrorf(schema.CodeUnavailable, "Too many passwords are being checked at the moment.")

func (p *PasswordPool) compute(ctx context.Context, f func() error) error {
	select {
	case p.admitted <- struct{}{}:
		defer func() { <-p.admitted }()
	default:
		return ErrBusy
	}
	timeout := time.NewTimer(maxWait)
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
