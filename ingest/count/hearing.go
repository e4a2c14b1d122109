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

// hearing tells webhooks of the clicks of a machine without a broker. It has marks of its own, in the store of the
// webhooks: a batch that is repeated because a process was killed between the two transactions is counted by the first
// one and told by the second.
type hearing struct {
	store   schema.HearingStore // nil: nobody hears
	builder *Builder
}

func newHearing(store schema.HearingStore, countries *enrich.Countries, log *slog.Logger) *hearing {
	return &hearing{store: store, builder: NewBuilder(countries, log)}
}

// hear tells of the batches of some lanes, which are counted, in one transaction. Without a webhook that hears of
// clicks it costs a look.
func (h *hearing) hear(ctx context.Context, lanes []*stream.Batch) error {
	if h.store == nil {
		return nil
	}
	accounts, err := h.store.HearingAccounts(ctx)
	if err != nil || len(accounts) == 0 {
		return err
	}
	b := h.builder
	b.Batch.Reset(0, 0)
	b.Only = make(map[int64]bool, len(accounts))
	for _, account := range accounts {
		b.Only[account] = true
	}
	told := false
	defer func() {
		if !told { // the marks are ahead of the store
			b.Forget()
		}
	}()
	for _, lane := range lanes {
		if _, err := b.AddLane(ctx, lane, h.store.HeardMarks); err != nil && !errors.Is(err, stream.ErrRefused) {
			return fmt.Errorf("read what webhooks have heard: %w", err)
		}
	}
	if b.Batch.Len() > 0 {
		if err := h.store.HearClicks(ctx, &b.Batch); err != nil {
			return err
		}
	}
	told = true
	b.Stored()
	return nil
}
