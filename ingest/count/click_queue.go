package count

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"linkstream/schema"
	"linkstream/schema/enrich"
	"linkstream/schema/stream"
)

// clickQueue queues clicks for webhooks on a machine without a broker. It has marks of its own, in the store of the
// webhooks: if a process is killed between the two transactions, the repeated batch is dropped by the count's marks and
// queued.
type clickQueue struct {
	store   schema.ClickHookStore // nil: no webhooks
	builder *Builder
}

func newClickQueue(store schema.ClickHookStore, countries *enrich.Countries, log *slog.Logger) *clickQueue {
	return &clickQueue{store: store, builder: NewBuilder(countries, log)}
}

// add queues the counted batches of some lanes in one transaction. Without a webhook that subscribes to clicks it costs
// one query.
func (q *clickQueue) add(ctx context.Context, lanes []*stream.Batch) error {
	if q.store == nil {
		return nil
	}
	accounts, err := q.store.ClickHookAccounts(ctx)
	if err != nil || len(accounts) == 0 {
		return err
	}
	b := q.builder
	b.Batch.Reset(0, 0)
	b.Only = make(map[int64]bool, len(accounts))
	for _, account := range accounts {
		b.Only[account] = true
	}
	stored := false
	defer func() {
		if !stored { // the marks are ahead of the store
			b.Forget()
		}
	}()
	for _, lane := range lanes {
		if _, err := b.AddLane(ctx, lane, q.store.QueuedMarks); err != nil && !errors.Is(err, stream.ErrRefused) {
			return fmt.Errorf("read the marks of webhooks: %w", err)
		}
	}
	if b.Batch.Len() > 0 {
		if err := q.store.QueueClicks(ctx, &b.Batch); err != nil {
			return err
		}
	}
	stored = true
	b.Stored()
	return nil
}
