package edgeservice

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"linkstream/schema"
)

// LateLinks is a link store that may be opened after the edge has begun to serve what it has in memory. Until then its methods
// fail with CodeUnavailable.
type LateLinks struct{ opened atomic.Pointer[Links] }

var _ Links = (*LateLinks)(nil)

// patience is how long an edge that has cached links waits for its link store before it serves them.
const patience = time.Second

// Set opens the store.
func (l *LateLinks) Set(store Links) { l.opened.Store(&store) }

var errNotOpen = schema.Errorf(schema.CodeUnavailable, "the link store is not open yet")

func (l *LateLinks) store() (Links, error) {
	store := l.opened.Load()
	if store == nil {
		return nil, errNotOpen
	}
	return *store, nil
}

// Link implements Links.
func (l *LateLinks) Link(ctx context.Context, domainID int64, hash string) (schema.Link, error) {
	store, err := l.store()
	if err != nil {
		return schema.Link{}, err
	}
	return store.Link(ctx, domainID, hash)
}

// Destinations implements Links.
func (l *LateLinks) Destinations(ctx context.Context, keys []schema.LinkKey) ([]schema.Destination, error) {
	store, err := l.store()
	if err != nil {
		return nil, err
	}
	return store.Destinations(ctx, keys)
}

// VerifiedDomain implements Links.
func (l *LateLinks) VerifiedDomain(ctx context.Context, host string) (schema.Domain, error) {
	store, err := l.store()
	if err != nil {
		return schema.Domain{}, err
	}
	return store.VerifiedDomain(ctx, host)
}

// VerifiedDomains implements Links.
func (l *LateLinks) VerifiedDomains(ctx context.Context, after int64, limit int) ([]schema.Domain, error) {
	store, err := l.store()
	if err != nil {
		return nil, err
	}
	return store.VerifiedDomains(ctx, after, limit)
}

// Close closes the store if it was opened and can be closed. The edge has stopped.
func (l *LateLinks) Close() error {
	store, err := l.store()
	if closer, ok := store.(io.Closer); err == nil && ok {
		return closer.Close()
	}
	return nil
}

// RunBefore is Run for an edge whose link store is not open. It calls open, which may take any time, and whose error stops the
// edge. Unless the edge has restored links, which it serves meanwhile, it waits for open. It calls begin when it begins to serve.
func (s *Service) RunBefore(ctx context.Context, open func(context.Context) error, begin func()) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	opened := make(chan error, 1)
	go func() {
		err := open(serving)
		if err != nil {
			stop()
		}
		opened <- err
	}()
	var waited <-chan time.Time
	if s.Restored() > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		waited = timer.C
	}
	select {
	case err := <-opened:
		opened <- err
	case <-waited:
	}
	if serving.Err() == nil {
		begin()
	}
	err := s.Run(serving)
	stop()
	openErr := <-opened
	if ctx.Err() != nil && errors.Is(openErr, ctx.Err()) {
		openErr = nil
	}
	return errors.Join(err, openErr)
}
