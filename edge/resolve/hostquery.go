package resolve

import (
	"context"
	"fmt"
	"runtime/debug"

	"linkstream/schema"
)

// hostQuery looks up hosts, each in a goroutine, a bounded number at a time.
type hostQuery struct {
	domains             domainStore
	cache               *cache[domainID]
	ordinary, suspected chan struct{} // an element per look-up under way; suspects never delay the others
}

const (
	hostQueries        = 48
	suspectHostQueries = 16
)

func newHostQuery(domains domainStore, c *cache[domainID]) *hostQuery {
	return &hostQuery{domains, c, make(chan struct{}, hostQueries), make(chan struct{}, suspectHostQueries)}
}

// begin is a cache's begin for hosts.
func (q *hostQuery) begin(f *flight[domainID]) { go q.run(f) }

func (q *hostQuery) run(f *flight[domainID]) {
	defer func() { q.cache.end([]*flight[domainID]{f}) }()
	err := q.cache.limiter.do(func(ctx context.Context) error {
		domain, err := q.lookup(ctx, f.question, f.suspect)
		switch {
		case err == nil:
			site := appendSite(nil, &domain.Site, domain.HasAppLinks)
			q.cache.publish(f, newEntry(domainID(domain.ID), []byte(f.question), site), 0)
		case schema.ErrorCode(err) == schema.CodeNotFound:
			q.cache.publishNone(f, []byte(f.question))
		default:
			return err
		}
		return nil
	})
	if err != nil {
		f.err = err
	}
}

func (q *hostQuery) lookup(ctx context.Context, host string, suspect bool) (domain schema.Domain, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = schema.Errorf(schema.CodeInternal, "panic: %v\n%s", cause, debug.Stack())
		}
	}()
	slots := q.ordinary
	if suspect {
		slots = q.suspected
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return domain, fmt.Errorf("look up domain %q: %d look-ups are under way", host, cap(slots))
	}
	if domain, err = q.domains.VerifiedDomain(ctx, host); err != nil {
		return domain, fmt.Errorf("look up domain %q: %w", host, err)
	}
	return domain, nil
}
