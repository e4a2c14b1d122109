package auth

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"linkstream/schema"
)

const (
	// flushEvery is how long a use of a token may wait to be written.
	flushEvery = 5 * time.Second
	// maxUses bounds the tokens whose uses wait. Uses of more are forgotten: "last used" is for people to judge by.
	maxUses = 1 << 14
)

// uses are the latest uses of tokens that have yet to be written, so that a request costs no write of its own.
type uses struct {
	mu sync.Mutex
	at map[int64]time.Time // by the token's ID
}

func (u *uses) note(tokenID int64, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last, known := u.at[tokenID]; at.After(last) && (known || len(u.at) < maxUses) {
		u.at[tokenID] = at
	}
}

// take returns all uses that wait; they wait no more.
func (u *uses) take() map[int64]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := u.at
	u.at = map[int64]time.Time{}
	return taken
}

// flush writes the uses that wait. They go on waiting if that fails.
func (u *uses) flush(ctx context.Context, tokens schema.TokenStore) error {
	taken := u.take()
	if len(taken) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	err := tokens.UseTokens(ctx, taken)
	if err != nil {
		for id, at := range taken {
			u.note(id, at)
		}
	}
	return err
}

// Run notes in the store when tokens were used, every few seconds and once more when ctx is done: end it when nobody is
// authenticated any more.
func (a *Authenticator) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			running = false
		}
		if err := a.uses.flush(context.WithoutCancel(ctx), a.tokens); err != nil {
			log.Warn("uses of tokens not noted", "error", err)
		}
	}
}
