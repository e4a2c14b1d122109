package load

import (
	"context"
	"time"
)

// Closed has each connection send its next request as soon as the last one is answered, for as long as window.
func Closed(ctx context.Context, t Target, window time.Duration) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, window+grace)
	defer cancel()
	return t.run(ctx, func(c *client, began time.Time) error {
		for now := began; now.Sub(began) < window; {
			var err error
			if now, err = c.ask(now); err != nil {
				return err
			}
		}
		return nil
	})
}
