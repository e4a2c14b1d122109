package rest_test

import (
	"strconv"
	"testing"
)

// remaining returns X-RateLimit-Remaining and checks X-RateLimit-Limit.
func remaining(t *testing.T, a answer) int {
	t.Helper()
	if got := a.header.Get("X-RateLimit-Limit"); got != "2000" {
		t.Errorf("X-RateLimit-Limit: %q", got)
	}
	left, err := strconv.Atoi(a.header.Get("X-RateLimit-Remaining"))
	if err != nil || left < 0 || left > 1999 {
		t.Errorf("X-RateLimit-Remaining: %v", a.header)
	}
	return left
}
