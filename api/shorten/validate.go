package shorten

import (
	"context"
	"sync"
	"time"

	"linkstream/schema"
)

// validateURL returns where the long URL leads. It adds what is wrong with the field to invalid.
func (s *Shortener) validateURL(ctx context.Context, req Request, invalid map[string][]string) (target, error) {
	if invalid[FieldLongURL] != nil {
		return target{}, nil
	}
	to, problem := parseTarget(req.LongURL)
	if problem == "" {
		own, err := s.owns(ctx, to)
		if err != nil {
			return target{}, err
		}
		if own {
			problem = "The long URL must not lead to this service itself, or to localhost."
		}
	}
	if problem != "" {
		invalid[FieldLongURL] = []string{problem}
	}
	return to, nil
}

// owns reports whether the target is this service, or a custom domain of it.
func (s *Shortener) owns(ctx context.Context, to target) (bool, error) {
	if s.own.contain(to) {
		return true, nil
	}
	now := time.Now()
	if s.foreignHosts.contains(to.host, now) {
		return false, nil
	}
	_, err := s.domains.VerifiedDomain(ctx, string(to.host))
	if schema.ErrorCode(err) == schema.CodeNotFound {
		s.foreignHosts.add(to.host, now)
		return false, nil
	}
	return err == nil, err
}

// domainProblem is the same in all cases, so that nobody learns which domains other accounts have.
const domainProblem = "The domain must be a verified domain of yours."

// validateDomain returns the requested domain, the zero Domain for the default one. It adds what is wrong with the field
// to invalid.
func (s *Shortener) validateDomain(ctx context.Context, req Request, invalid map[string][]string) (schema.Domain, error) {
	if invalid[FieldDomainID] != nil || req.DomainID == nil {
		return schema.Domain{}, nil
	}
	domain, err := s.domains.Domain(ctx, *req.DomainID)
	if err != nil && schema.ErrorCode(err) != schema.CodeNotFound {
		return schema.Domain{}, err
	}
	if err != nil || domain.AccountID != req.AccountID || domain.VerifiedAt.IsZero() {
		invalid[FieldDomainID] = []string{domainProblem}
	}
	return domain, nil
}

func validateAlias(req Request, invalid map[string][]string) {
	switch alias := req.CustomAlias; {
	case invalid[FieldCustomAlias] != nil || alias == nil:
	case !schema.ValidAlias(*alias):
		invalid[FieldCustomAlias] = []string{"The alias must have 3 to 20 characters of a-z, 0-9, _ and -."}
	case schema.ReservedAlias(*alias):
		invalid[FieldCustomAlias] = []string{"The alias is reserved."}
	}
}

// Limits of a negativeCache.
const (
	negativeTTL      = time.Second
	maxNegativeHosts = 4096
)

// negativeCache remembers for a short time that hosts are not verified domains, because accounts that create many links
// create most of them to few hosts. The price: links to a host are still accepted for negativeTTL after it is verified.
type negativeCache struct {
	mu    sync.Mutex
	until map[schema.Host]time.Time
}

func (c *negativeCache) contains(host schema.Host, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Before(c.until[host])
}

func (c *negativeCache) add(host schema.Host, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == nil || len(c.until) >= maxNegativeHosts {
		c.until = make(map[schema.Host]time.Time)
	}
	c.until[host] = asked.Add(negativeTTL)
}
