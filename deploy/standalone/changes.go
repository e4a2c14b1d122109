package main

import (
	"context"
	"log/slog"
	"time"

	"linkstream/edge/edgeservice"
	"linkstream/schema"
	"linkstream/schema/stream"
)

// dropTimeout bounds how long the answer to a change waits until the edge has dropped what it had cached.
const dropTimeout = time.Second

// changes stands for the topic of changes. The edge keeps nothing over a restart and reads the outbox of the link store
// by itself.
type changes struct{}

// FollowChanges says that nothing was missed since the start.
func (changes) FollowChanges(ctx context.Context, _ schema.ChangePosition, follower stream.ChangeFollower) {
	follower.Reached(schema.ChangePosition{}, true)
	<-ctx.Done()
}

// dropper makes the edge drop what changes.
type dropper struct {
	edge *edgeservice.Service
	log  *slog.Logger
}

// changed is called before a change of the API is answered. If it fails, the edge reads the change from the outbox a
// moment later.
func (d dropper) changed() {
	ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
	defer cancel()
	if err := d.edge.DropPending(ctx); err != nil {
		d.log.Warn("cannot read a change at once", "error", err)
	}
}

// publish empties the outbox, whose changes the edge has dropped when it returns.
func (d dropper) publish(ctx context.Context, _ []schema.Change) error {
	return d.edge.DropPending(ctx)
}
