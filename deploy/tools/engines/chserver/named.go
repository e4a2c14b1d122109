//go:build linux

package main

import (
	"bytes"
	"context"
	"sync"
)

// named are the queries to which their clients gave an id, from their arrival on. The engine's own list has a query
// only while it runs: an insert whose rows are still on their way, or that has not begun yet, is not in it.
type named struct {
	mu      sync.Mutex
	queries map[*namedQuery]bool
}

type namedQuery struct {
	ids    [2]string // its own, and that of the query of another node that made it
	cancel context.CancelFunc
	ended  chan struct{}
}

// begin adds a query. Its client calls end.
func (n *named) begin(ctx context.Context, id, initial string) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	if id == "" {
		return ctx, cancel
	}
	q := &namedQuery{ids: [2]string{id, initial}, cancel: cancel, ended: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.queries == nil {
		n.queries = map[*namedQuery]bool{}
	}
	n.queries[q] = true
	return ctx, func() {
		n.mu.Lock()
		delete(n.queries, q)
		n.mu.Unlock()
		cancel()
		close(q.ended)
	}
}

// kill cancels the queries whose ids stand in a KILL QUERY, and waits until they have ended.
func (n *named) kill(ctx context.Context, statement []byte) {
	n.mu.Lock()
	var found []*namedQuery
	for q := range n.queries {
		for _, id := range q.ids {
			if id != "" && bytes.Contains(statement, []byte(quote(id))) {
				found = append(found, q)
				break
			}
		}
	}
	n.mu.Unlock()
	for _, q := range found {
		q.cancel()
	}
	for _, q := range found {
		select {
		case <-q.ended:
		case <-ctx.Done():
		}
	}
}
