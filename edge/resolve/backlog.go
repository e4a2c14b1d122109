package resolve

import (
	"context"
	"time"
)

// backlog holds restored entries until the shards have them. Ristretto takes three times as long to take an entry in as it takes to
// read one from the snapshot, so an edge serves these entries from here at first. Once requests can find it, a backlog does not
// change: an entry that is not to be found any more is retired. A nil backlog is empty.
type backlog[V value] struct {
	groups [backlogGroups]map[uint64]*entry[V] // by the first hash of the key
	count  int                                 // of the entries
	bytes  int64                               // what they take in the shards
	most   int64
}

// backlogGroups is into how many maps ristretto divides its entries, by the same hash. So entries that are moved one after the other
// come to lie together, and a third of the time to move them is saved.
const backlogGroups = 256

// newBacklog returns a backlog of as many bytes as there is room for in the shards.
func newBacklog[V value](s shards[V]) *backlog[V] {
	b := &backlog[V]{most: s.capacity()}
	for i := range b.groups {
		b.groups[i] = map[uint64]*entry[V]{}
	}
	return b
}

func (b *backlog[V]) group(hash uint64) map[uint64]*entry[V] { return b.groups[hash%backlogGroups] }

// get returns the entry of a key, or nil.
func (b *backlog[V]) get(hash, check uint64) *entry[V] {
	if b == nil {
		return nil
	}
	if e := b.group(hash)[hash]; e != nil && e.check == check {
		return e
	}
	return nil
}

// add adds the entry of a key. If there is no room left, others go, as the snapshot does not say which of them are popular.
func (b *backlog[V]) add(hash uint64, e *entry[V]) {
	b.remove(hash)
	group := b.group(hash)
	b.bytes += e.cost()
	if b.bytes > b.most {
		b.makeRoom(group)
	}
	group[hash] = e
	b.count++
}

// makeRoom removes random entries of a group as long as there is no room left.
func (b *backlog[V]) makeRoom(group map[uint64]*entry[V]) {
	for other := range group { // in random order
		b.remove(other)
		if b.bytes <= b.most {
			return
		}
	}
}

// remove removes the entry of a key if there is one.
func (b *backlog[V]) remove(hash uint64) {
	group := b.group(hash)
	if e := group[hash]; e != nil {
		b.bytes -= e.cost()
		b.count--
		delete(group, hash)
	}
}

// clear removes all entries.
func (b *backlog[V]) clear() {
	for _, group := range b.groups {
		clear(group)
	}
	b.count, b.bytes = 0, 0
}

// each calls visit for all entries.
func (b *backlog[V]) each(visit func(*entry[V])) {
	if b == nil {
		return
	}
	for _, group := range b.groups {
		for _, e := range group {
			visit(e)
		}
	}
}

const (
	settleStep  = 1024 // entries between two pauses, far below what ristretto's queue holds
	settleShare = 4    // the part of the time in which entries are moved is 1/settleShare, so that redirects keep the CPUs
)

// Settle moves what was restored to where it stays, in the background of redirects, unless ctx is done before. Until it returns
// requests find the same, but what was restored does not make room for other links. It must return before Close is called.
func (r *Resolver) Settle(ctx context.Context) {
	settle(ctx, r.hosts)
	settle(ctx, r.links)
}

// settle moves the backlog of a cache to the shards. An entry that is retired meanwhile may get there, where it is not found either.
func settle[V value](ctx context.Context, c *cache[V]) {
	b := c.backlog.Load()
	if b == nil {
		return
	}
	moved, began := 0, time.Now()
	for _, group := range b.groups {
		for hash, e := range group {
			if e.state.isRetired() {
				continue
			}
			c.shards.set(hash, e)
			if moved++; moved%settleStep != 0 {
				continue
			}
			c.shards.wait()
			select {
			case <-ctx.Done():
				return
			case <-time.After((settleShare - 1) * time.Since(began)):
				began = time.Now()
			}
		}
	}
	c.shards.wait()
	c.backlog.Store(nil)
}
