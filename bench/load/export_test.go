package load

import (
	"context"
	"time"
)

// ParseHeader exposes the parser of servers' answers.
var ParseHeader = parseHeader

// OpenWithin is Open with another grace, after which late requests are dropped.
func OpenWithin(ctx context.Context, t Target, rate float64, window, grace time.Duration) (Result, error) {
	return generate(ctx, t, pace{rate: rate, window: window, grace: grace})
}
