package auth

import (
	"context"
	"sync"
	"time"

	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/turns"
)

const (
	// maxWaiting bounds all waiting calls, maxWaitingEach the waiting calls of one client. Further calls are refused at
	// once.
	maxWaiting     = 256
	maxWaitingEach = 4
	// maxWait bounds how long they wait.
	maxWait = 5 * time.Second
)

// PasswordPool hashes and verifies passwords on at most half of the CPUs, because each computation takes 19 MiB and a
// CPU for 20 ms. Clients take turns. Its methods may be called concurrently.
type PasswordPool struct {
	turns       *turns.Turns
	unknownHash string // the hash of a random password; stands in for accounts that do not exist
}

// unknownHash returns the same hash to all pools of the process.
var unknownHash = sync.OnceValue(func() string { return HashPassword(NewPassword()) })

// NewPasswordPool returns a pool with one slot per two CPUs.
func NewPasswordPool() *PasswordPool { return newPasswordPool(service.CPUs()) }

func newPasswordPool(cpus int) *PasswordPool {
	return &PasswordPool{unknownHash: unknownHash(), turns: turns.New(turns.Limits{
		Places: max(1, cpus/2), Waiting: maxWaiting, WaitingEach: maxWaitingEach,
	})}
}

// Hash is HashPassword in the pool. ErrBusy if the pool has no room.
func (p *PasswordPool) Hash(ctx context.Context, client turns.Client, password string) (hash string, err error) {
	err = p.compute(ctx, client, func() error { hash = HashPassword(password); return nil })
	return hash, err
}

// Verify is VerifyPassword in the pool. An empty hash stands for an account that does not exist: Verify takes as long
// and returns false. ErrBusy if the pool has no room.
func (p *PasswordPool) Verify(
	ctx context.Context, client turns.Client, hash, password string,
) (ok bool, err error) {
	known := hash != ""
	if !known {
		hash = p.unknownHash
	}
	err = p.compute(ctx, client, func() error { ok, err = VerifyPassword(hash, password); return err })
	return ok && known, err
}

// ErrBusy means that too many passwords are being computed. Its code is CodeUnavailable.
var ErrBusy = schema.ClientErrorf(schema.CodeUnavailable, "Too many passwords are being checked at the moment.")

func (p *PasswordPool) compute(ctx context.Context, client turns.Client, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if p.turns.Take(ctx, client, 1) != nil {
		return ErrBusy
	}
	defer p.turns.Leave(client)
	return f()
}
