package auth

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"linkstream/schema"
)

const (
	// flushInterval is the time between two writes of uses.
	flushInterval = 5 * time.Second
	// maxUses bounds the tokens whose uses are buffered. Uses of further tokens are lost: people read "last used", no
	// program depends on it.
	maxUses = 1 << 14
)

// uses buffers the latest use of each token, so that a request costs no write of its own.
type uses struct {
	mu sync.Mutex
	at map[int64]time.Time // by token ID
}

func (u *uses) note(tokenID int64, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last, known := u.at[tokenID]; at.After(last) && (known || len(u.at) < maxUses) {
		u.at[tokenID] = at
	}
}

// take empties the buffer and returns its content.
func (u *uses) take() map[int64]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := u.at
	u.at = map[int64]time.Time{}
	return taken
}

// flush writes the buffered uses. If that fails they stay buffered.
func (u *uses) flush(ctx context.Context, tokens schema.TokenStore) error {
	taken := u.take()
	if len(taken) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := tokens.UseTokens(ctx, taken)
	if err != nil {
		for id, at := range taken {
			u.note(id, at)
		}
	}
	return err
}

// Run writes to the store when tokens were used: every few seconds, and once more when ctx is done. End ctx after the
// last call of Authenticate has returned, or the last uses are lost.
func (a *Authenticator) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			running = false
		}
		if err := a.uses.flush(context.WithoutCancel(ctx), a.tokens); err != nil {
			log.Warn("cannot write when tokens were used", "error", err)
		}
	}
}
