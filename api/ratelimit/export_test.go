package ratelimit

// KnownWindows returns the number of windows in memory.
func (a *AttemptLimiter) KnownWindows() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.known)
}
