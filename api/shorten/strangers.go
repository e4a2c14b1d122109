package shorten

import (
	"sync"
	"time"

	"linkstream/schema"
)

const (
	// strangerFor is how long a host is not asked about again: who verifies a domain could for so much longer make links
	// to it on other domains.
	strangerFor  = time.Second
	maxStrangers = 4096
)

// strangers are hosts that were no domain of the service's a moment ago. Those who make many links make most of them to
// one host.
type strangers struct {
	mu    sync.Mutex
	until map[schema.Host]time.Time
}

func (s *strangers) has(host schema.Host, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.until[host])
}

func (s *strangers) add(host schema.Host, asked time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil || len(s.until) >= maxStrangers {
		s.until = make(map[schema.Host]time.Time)
	}
	s.until[host] = asked.Add(strangerFor)
}
