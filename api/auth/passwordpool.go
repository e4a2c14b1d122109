package auth

import (
	"context"
	"sync"
	"time"

	"linkstream/schema"
	"linkstream/schema/service"
)

const (
	// maxWaiting bounds the calls that wait for a free slot, and maxWaitingEach those of one network. Further calls are refused
	// at once.
	maxWaiting     = 256
	maxWaitingEach = 4
	// maxWait bounds how long they wait.
	maxWait = 5 * time.Second
)

// PasswordPool hashes and verifies passwords on at most half of the CPUs, because each computation takes 19 MiB and a CPU for 20
// ms. Its methods may be called concurrently. Each call names the network that it is for.
type PasswordPool struct {
	running     chan struct{} // one element per computation
	unknownHash string        // the hash of a random password; stands in for accounts that do not exist

	mu      sync.Mutex
	waiting int
	each    map[string]int // calls that wait, by network
}

// unknownHash returns the same hash to all pools of the process.
var unknownHash = sync.OnceValue(func() string { return HashPassword(NewPassword()) })

// NewPasswordPool returns a pool with one slot per two CPUs.
func NewPasswordPool() *PasswordPool { return newPasswordPool(service.CPUs()) }

func newPasswordPool(cpus int) *PasswordPool {
	return &PasswordPool{
		running: make(chan struct{}, max(1, cpus/2)), unknownHash: unknownHash(), each: map[string]int{},
	}
}

// Hash is HashPassword in the pool. ErrBusy if the pool has no room.
func (p *PasswordPool) Hash(ctx context.Context, network, password string) (hash string, err error) {
	err = p.compute(ctx, network, func() error { hash = HashPassword(password); return nil })
	return hash, err
}

// Verify is VerifyPassword in the pool. An empty hash stands for an account that does not exist: Verify takes as long and
// returns false. ErrBusy if the pool has no room.
func (p *PasswordPool) Verify(ctx context.Context, network, hash, password string) (ok bool, err error) {
	known := hash != ""
	if !known {
		hash = p.unknownHash
	}
	err = p.compute(ctx, network, func() error { ok, err = VerifyPassword(hash, password); return err })
	return ok && known, err
}

// ErrBusy means that too many passwords are being computed. Its code is CodeUnavailable.
var ErrBusy = schema.ClientErrorf(schema.CodeUnavailable, "Too many passwords are being checked at the moment.")

func (p *PasswordPool) compute(ctx context.Context, network string, f func() error) error {
	if !p.await(ctx, network) {
		return ErrBusy
	}
	defer func() { <-p.running }()
	return f()
}

// await takes a slot, for which it waits if the network may.
func (p *PasswordPool) await(ctx context.Context, network string) bool {
	select {
	case p.running <- struct{}{}:
		return true
	default:
	}
	if !p.lineUp(network) {
		return false
	}
	defer p.stepOut(network)
	timeout := time.NewTimer(maxWait)
	defer timeout.Stop()
	select {
	case p.running <- struct{}{}:
		return true
	case <-timeout.C:
	case <-ctx.Done():
	}
	return false
}

func (p *PasswordPool) lineUp(network string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting >= maxWaiting || p.each[network] >= maxWaitingEach {
		return false
	}
	p.waiting++
	p.each[network]++
	return true
}

func (p *PasswordPool) stepOut(network string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
	if p.each[network]--; p.each[network] == 0 {
		delete(p.each, network)
	}
}
