package shorten

import (
	"context"
	"io"

	"linkstream/schema"
)

// ParseTarget returns the host of the target, for the fuzz test.
func ParseTarget(longURL string) (host, problem string) {
	to, problem := parseTarget(longURL)
	return string(to.host), problem
}

// ParseHosts returns the hosts in a blocklist file, for the fuzz test.
func ParseHosts(file io.Reader) (hosts []string, err error) {
	_, err = parseHosts(file, func(host schema.Host) { hosts = append(hosts, string(host)) })
	return hosts, err
}

// Blocks reports whether the list blocks a canonical host.
func Blocks(list *Blocklist, host string) bool { return list.blocks(schema.Host(host)) }

// Owns looks up whether this service serves host, as Create does.
func (s *Shortener) Owns(ctx context.Context, host schema.Host) (bool, error) {
	return s.owns(ctx, target{host, "443"})
}

// ForeignHosts returns the number of hosts in the negative cache.
func (s *Shortener) ForeignHosts() int { return len(s.foreignHosts.until) }

// MaxNegativeHosts is maxNegativeHosts.
const MaxNegativeHosts = maxNegativeHosts
