package access

import (
	"sync"
	"time"
)

// A token may make RateLimit requests in each RateWindow. Windows begin at full minutes.
const (
	RateLimit  = 2000
	RateWindow = time.Minute
)

// Quota is what is left of a token's window.
type Quota struct {
	Limit     int
	Remaining int
	OK        bool // the request is within the limit
	// RetryAfter is when the window ends, in whole seconds, at least one; set if OK is false.
	RetryAfter time.Duration
}

// Limiter counts the requests of each token. Its methods may be called concurrently.
type Limiter struct {
	mu    sync.Mutex
	begin time.Time     // of the window
	used  map[int64]int // requests in the window by token; at most RateLimit
}

// NewLimiter returns a Limiter that has counted nothing.
func NewLimiter() *Limiter { return &Limiter{} }

// Allow counts a request of a token. What is over the limit is not counted.
func (l *Limiter) Allow(tokenID int64) Quota {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The clock is read in here, or one who read it before a window's end could put that window back after its end.
	now := time.Now()
	if begin := now.Truncate(RateWindow); !begin.Equal(l.begin) {
		l.begin, l.used = begin, map[int64]int{}
	}
	used := l.used[tokenID]
	if used >= RateLimit {
		left := l.begin.Add(RateWindow).Sub(now)
		return Quota{Limit: RateLimit, RetryAfter: (left + time.Second - 1).Truncate(time.Second)}
	}
	l.used[tokenID] = used + 1
	return Quota{Limit: RateLimit, Remaining: RateLimit - used - 1, OK: true}
}
