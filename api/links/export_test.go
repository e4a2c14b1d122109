package links

import (
	"context"

	"linkstream/schema"
)

// ParseTarget returns the host of the target, for the fuzz test.
func ParseTarget(longURL string) (host, problem string) {
	to, problem := parseTarget(longURL)
	return string(to.host), problem
}

// Owns looks up whether this service serves host, as Create does.
func (s *Shortener) Owns(ctx context.Context, host schema.Host) (bool, error) {
	return s.owns(ctx, target{host, "443"})
}

// ForeignHosts returns the number of hosts in the negative cache.
func (s *Shortener) ForeignHosts() int { return len(s.foreignHosts.until) }

// MaxNegativeHosts is maxNegativeHosts.
const MaxNegativeHosts = maxNegativeHosts
