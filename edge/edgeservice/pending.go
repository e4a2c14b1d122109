package edgeservice

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"linkstream/schema"
)

const (
	// pendingEvery is the interval in which an edge reads the outbox. So it drops changes within a second also while the
	// broker or every api process is away.
	pendingEvery   = 500 * time.Millisecond
	pendingTimeout = 5 * time.Second
)

// pending drops the changes in the outbox of the link store.
type pending struct {
	store interface {
		PendingChanges(ctx context.Context, after schema.OutboxPosition) (schema.Pending, error)
	}
	log *slog.Logger

	mu     sync.Mutex
	caches caches
}

// drop drops the changes that have entered the outbox since the last call, or since the snapshot.
func (p *pending) drop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	read, err := p.store.PendingChanges(ctx, p.caches.Position().Outbox)
	if err != nil {
		return err
	}
	if read.Missed {
		p.caches.Missed()
	}
	for _, change := range read.Changes {
		p.caches.Drop(change)
	}
	p.caches.ReachedInOutbox(read.Next)
	return nil
}

// run drops changes until ctx is done.
func (p *pending) run(ctx context.Context) {
	every := time.NewTicker(pendingEvery)
	defer every.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		reading, cancel := context.WithTimeout(ctx, pendingTimeout)
		err := p.drop(reading)
		cancel()
		if err != nil && !failing && ctx.Err() == nil {
			p.log.Warn("cannot read changes in the outbox of the link store, retrying", "error", err)
		}
		failing = err != nil
	}
}
