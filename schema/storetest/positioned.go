package storetest

import (
	"context"
	"sync"

	"linkstream/schema"
)

// Positioned makes a store of clicks a PositionStore, for tests of programs that count a topic. It keeps positions in
// memory, for as long as the store is open. In addition to the contract, the store compares marks.
type Positioned struct {
	schema.ClickStore
	mu sync.Mutex
	at map[int]schema.Position // by partition
}

// NewPositioned returns a store without positions.
func NewPositioned(store schema.ClickStore) *Positioned {
	return &Positioned{ClickStore: store, at: map[int]schema.Position{}}
}

// Position implements schema.PositionStore.
func (p *Positioned) Position(_ context.Context, partition int) (schema.Position, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at[partition], nil
}

// InsertClicks implements schema.PositionStore.
func (p *Positioned) InsertClicks(ctx context.Context, b *schema.ClickBatch) error {
	if err := b.CheckEpoch(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.at[b.Partition]; at.Epoch != b.BaseEpoch || at.Next != b.Base {
		return schema.Errorf(schema.CodeConflict, "the partition is at offset %d of epoch %d", at.Next, at.Epoch)
	}
	if err := p.ClickStore.InsertClicks(ctx, b); err != nil {
		return err
	}
	p.at[b.Partition] = schema.Position{Epoch: b.Epoch, Next: b.Next, Last: b.Last()}
	return nil
}
