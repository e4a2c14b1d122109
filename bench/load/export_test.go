package load

import (
	"context"
	"time"
)

// ParseHeader exposes the parser of what a server may send.
var ParseHeader = parseHeader

// Generators are all implementations of a load by name.
var Generators = map[string]Generator{"this system": generate, "portable": generatePortable}

// Generator is an implementation of Closed and Open.
type Generator func(context.Context, Target, pace) (Result, error)

// Closed is the function Closed.
func (g Generator) Closed(ctx context.Context, t Target, window time.Duration) (Result, error) {
	return g(ctx, t, pace{window: window, grace: grace})
}

// Open is the function Open that drops requests after the given grace.
func (g Generator) Open(ctx context.Context, t Target, rate float64, window, grace time.Duration) (Result, error) {
	return g(ctx, t, pace{rate: rate, window: window, grace: grace})
}
