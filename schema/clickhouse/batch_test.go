package clickhouse_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"linkstream/schema/clickhouse"
	"linkstream/schema/testkit"
)

func TestContextOfABatch(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]bool{"ends with its caller's while it is sent": false,
		"does not end after that": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, cancel := context.WithCancel(t.Context())
				ctx, stop := clickhouse.UntilSent(parent)
				if sent {
					stop()
				}
				cancel()
				synctest.Wait()
				select {
				case <-ctx.Done():
					testkit.Equal(t, "done after it was sent", sent, false)
				default:
					testkit.Equal(t, "not done", sent, true)
				}
				testkit.Equal(t, "error", errors.Is(ctx.Err(), context.Canceled), !sent)
			})
		})
	}
}
