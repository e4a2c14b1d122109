package contender

import (
	"context"
	"sync"

	"linkstream/schema/stream"
)

// gate keeps the workers of a consumer group from counting until the group has divided all partitions among all of
// them. Each worker that joins restarts the others, which is not part of the cost of counting.
type gate struct {
	partitions int
	open       chan struct{}

	mu       sync.Mutex
	assigned []int // partitions of each worker
}

func newGate(workers, partitions int) *gate {
	return &gate{partitions: partitions, open: make(chan struct{}), assigned: make([]int, workers)}
}

// assign records the number of partitions of a worker.
func (g *gate) assign(worker, partitions int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.assigned[worker] = partitions
	sum := 0
	for _, n := range g.assigned {
		if n == 0 {
			return
		}
		sum += n
	}
	select {
	case <-g.open:
	default:
		if sum == g.partitions {
			close(g.open)
		}
	}
}

// gatedMember is a worker's membership in a group, whose work waits for the gate.
type gatedMember struct {
	*stream.Client
	gate   *gate
	worker int
}

// Consume replaces the client's.
func (m *gatedMember) Consume(
	ctx context.Context, onAssigned func(context.Context, int), work func(context.Context, stream.Assignment),
) error {
	assigned := func(ctx context.Context, partitions int) {
		m.gate.assign(m.worker, partitions)
		onAssigned(ctx, partitions)
	}
	return m.Client.Consume(ctx, assigned, func(ctx context.Context, a stream.Assignment) {
		select {
		case <-m.gate.open:
			work(ctx, a)
		case <-ctx.Done():
		}
	})
}
