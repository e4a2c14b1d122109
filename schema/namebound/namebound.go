// Package namebound bounds the names that clients write: the referrers under which a store counts the clicks of a link on
// one UTC day. The first schema.MaxNames of them keep their names, all others are counted as schema.OtherName.
//
// A Bound only chooses names. Which clicks are counted, and that each is counted once, does not depend on it: a batch that is
// built again, by the same worker or another one, may get other names, and the store counts one of the two batches as a
// whole. So what a Bound remembers need not be exact, and need not survive its process:
//
//   - It ignores a link and day until it has seen suspicious clicks with a referrer on it. Most have fewer, and cost neither
//     a query nor memory for names.
//   - From then on it keeps hashes of the names, the ones in the store to begin with.
//   - When its memory is full, it forgets everything and begins again.
//
// A link and day may therefore have more than schema.MaxNames names: up to suspicious more for each time that a process
// starts or forgets, and up to schema.MaxNames more for each further process that counts the link at the same moment.
package namebound

import (
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	"linkstream/schema"
)

const (
	suspicious = schema.MaxNames / 4
	// The memory of a Bound: about 8 MB for links and days, and 20 MB for hashes of names.
	maxKeys   = 1 << 17
	maxHashes = 1 << 20
)

// Key is a link on a UTC day.
type Key struct {
	Link int64
	Day  int64 // since 1970-01-01
}

// Load calls each for referrers that a store has counted for the given links and days: all of them or schema.MaxNames per
// link and day. It may also call each for other links and days.
type Load func(ctx context.Context, keys []Key, each func(key Key, referrer string)) error

// Bound chooses the names of referrers. Its methods may be called concurrently.
type Bound struct {
	load Load
	seed maphash.Seed

	mu     sync.Mutex // not held during load
	keys   map[Key]state
	hashes int // in all keys
}

// state is what a Bound knows of a link and day.
type state struct {
	clicks uint32              // with a referrer, up to suspicious
	names  map[uint64]struct{} // hashes of the names; nil until clicks are suspicious
}

// New returns a Bound of the names in a store.
func New(load Load) *Bound {
	return &Bound{load: load, seed: maphash.MakeSeed(), keys: map[Key]state{}}
}

// Referrers returns the names by which to count the clicks of a batch: batch.Referrer itself or, if some are replaced, a
// copy in scratch. It returns an error if names cannot be loaded from the store.
func (b *Bound) Referrers(ctx context.Context, batch *schema.ClickBatch, scratch *[]string) ([]string, error) {
	names := column{batch.Referrer, scratch}
	if unknown := b.replaceKnown(&names, batch); len(unknown) > 0 {
		if err := b.learn(ctx, unknown); err != nil {
			return nil, err
		}
		b.replaceOf(unknown, &names, batch)
	}
	return names.now, nil
}

// replaceKnown replaces names of the links and days whose names are known. It returns those that have become suspicious.
func (b *Bound) replaceKnown(names *column, batch *schema.ClickBatch) (unknown map[Key]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.keys) > maxKeys || b.hashes > maxHashes {
		clear(b.keys)
		b.hashes = 0
	}
	for i, name := range batch.Referrer {
		if name == "" {
			continue
		}
		key := keyOf(batch, i)
		s := b.keys[key]
		switch {
		case s.names != nil:
			if !b.admit(s, name) {
				names.replace(i, batch)
			}
		case s.clicks < suspicious:
			s.clicks++
			b.keys[key] = s
		default:
			if unknown == nil {
				unknown = map[Key]bool{}
			}
			unknown[key] = true
		}
	}
	return unknown
}

// learn loads the names of suspicious links and days.
func (b *Bound) learn(ctx context.Context, unknown map[Key]bool) error {
	loaded := make(map[Key]map[uint64]struct{}, len(unknown))
	for key := range unknown {
		loaded[key] = map[uint64]struct{}{}
	}
	err := b.load(ctx, slices.Collect(maps.Keys(unknown)), func(key Key, referrer string) {
		if names := loaded[key]; names != nil && referrer != schema.OtherName {
			names[b.hash(referrer)] = struct{}{}
		}
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, names := range loaded {
		if b.keys[key].names == nil {
			b.keys[key] = state{suspicious, names}
			b.hashes += len(names)
		}
	}
	return nil
}

// replaceOf replaces names of some links and days, in the whole batch.
func (b *Bound) replaceOf(some map[Key]bool, names *column, batch *schema.ClickBatch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, name := range batch.Referrer {
		if name == "" {
			continue
		}
		if key := keyOf(batch, i); some[key] && !b.admit(b.keys[key], name) {
			names.replace(i, batch)
		}
	}
}

// admit reports whether a name may be counted: it was counted before, or there is room for it.
func (b *Bound) admit(s state, name string) bool {
	hash := b.hash(name)
	if _, known := s.names[hash]; known || s.names == nil {
		return true
	}
	if len(s.names) >= schema.MaxNames {
		return false
	}
	s.names[hash] = struct{}{}
	b.hashes++
	return true
}

func (b *Bound) hash(name string) uint64 { return maphash.String(b.seed, name) }

func keyOf(b *schema.ClickBatch, i int) Key {
	return Key{b.LinkID[i], schema.DayNumber(b.ClickedAt[i])}
}

// column is a batch's column Referrer, or a copy of it once a name is replaced: the batch belongs to its builder.
type column struct {
	now     []string
	scratch *[]string
}

func (c *column) replace(i int, batch *schema.ClickBatch) {
	if &c.now[0] == &batch.Referrer[0] {
		*c.scratch = append((*c.scratch)[:0], batch.Referrer...)
		c.now = *c.scratch
	}
	c.now[i] = schema.OtherName
}
