// Package namebound bounds what a store keeps of the clicks of a link on one UTC day:
//
//   - Names that clients make up (schema.MadeUpNames). The first names of a dimension are kept (schema.MaxNamesOf), all
//     others are counted as schema.OtherName.
//   - Combinations of the names of all dimensions. A client chooses most of them: a thousand referrers, two hundred
//     languages and some user agents make millions, and a report with a filter reads a row for each. The first
//     schema.MaxCombinations combinations are counted as they are. All other clicks keep the names that the visitor
//     does not choose, such as device, country and route, and are counted as schema.OtherName in every other dimension.
//     So each breakdown adds up to the total, with or without a filter.
//   - Combinations by quarter of an hour, which are rows of some stores: the first schema.MaxQuarterRows, likewise.
//
// A Bound only chooses names. Which clicks are counted, and that each is counted once, does not depend on it: a batch
// that is built again, by the same worker or another one, may get other names, and the store counts one of the two
// batches as a whole. So the memory of a Bound need not be exact, and need not survive its process:
//
//   - It ignores a link and day until it has seen suspicious clicks on it. Most have fewer, and cost neither a query
//     nor memory for names. A click with a name that may be rarer counts as several.
//   - From then on it keeps hashes of these names and of the combinations, beginning with the store's.
//   - When its memory is full, it forgets everything and begins again.
//
// A link and day may therefore have more than that: up to suspicious more for each time that a process starts or
// forgets, and up to as many again for each further process that counts the link at the same moment.
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
	suspicious = schema.MaxNames / 2
	// The memory of a Bound: about 10 MB for links and days, and 40 MB for hashes.
	maxKeys   = 1 << 17
	maxHashes = 1 << 21
)

var (
	dimensions = schema.Dimensions()
	// chosen are the numbers of the dimensions whose names the visitor chooses, and madeUp of those without a list.
	chosen = numbersOf(schema.PickedNames, schema.MadeUpNames)
	madeUp = numbersOf(schema.MadeUpNames)
	most   = func() (most []int) { // names of madeUp
		for _, by := range schema.Dimensions(schema.MadeUpNames) {
			most = append(most, schema.MaxNamesOf(by))
		}
		return most
	}()
)

// numbersOf returns the indexes in dimensions of some kinds of names.
func numbersOf(kinds ...schema.NameKind) (numbers []int) {
	for _, by := range schema.Dimensions(kinds...) {
		numbers = append(numbers, slices.Index(dimensions, by))
	}
	return numbers
}

// Key is a link on a UTC day.
type Key struct {
	Account int64 // the link's owner
	Link    int64
	Day     int64 // since 1970-01-01
}

// Load calls each for the combinations that a store has counted for the given links and days, by quarter of an hour if
// it has such rows, and otherwise with AllDay: all combinations, or at least schema.MaxCombinations per link and day.
// names has a name per dimension, in the order of schema.Dimensions, and is valid during the call. Load may also call
// each for other links and days.
type Load func(ctx context.Context, keys []Key, each func(key Key, quarter int64, names []string)) error

// AllDay stands for the quarters of an hour of a day.
const AllDay = -1

// Bound chooses the names of clicks. Its methods may be called concurrently.
type Bound struct {
	load Load
	seed maphash.Seed

	mu     sync.Mutex // not held during load
	keys   map[Key]state
	hashes int // in all keys
}

// state is the memory of a Bound about a link and day.
type state struct {
	clicks             uint32                // up to suspicious
	combinations, rows map[uint64]struct{}   // hashes; nil until clicks are suspicious
	madeUp             []map[uint64]struct{} // as the package's madeUp
}

// New returns a Bound of the names in a store.
func New(load Load) *Bound {
	return &Bound{load: load, seed: maphash.MakeSeed(), keys: map[Key]state{}}
}

// Apply returns a batch with the names by which to count the clicks of a batch: the batch itself or, if names are
// replaced, one with copies of columns in memory. It returns an error if names cannot be loaded from the store.
func (b *Bound) Apply(ctx context.Context, batch *schema.ClickBatch, memory *Memory) (*schema.ClickBatch, error) {
	memory.reset(batch)
	if unknown := b.replaceLoaded(memory); len(unknown) > 0 {
		if err := b.loadNames(ctx, unknown); err != nil {
			return nil, err
		}
		b.replaceOf(unknown, memory)
	}
	return memory.result(), nil
}

// replaceLoaded replaces names of the links and days whose names are loaded. It returns those that have become
// suspicious.
func (b *Bound) replaceLoaded(m *Memory) (unknown map[Key]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.makeRoom()
	for i := range m.batch.LinkID {
		key := keyOf(m.batch, i)
		s := b.keys[key]
		switch {
		case s.combinations != nil:
			b.replace(s, m, i)
		case s.clicks < suspicious:
			s.clicks += weight(m.batch, i)
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

// makeRoom forgets links and days with few clicks if there are many, and everything if that is not enough.
func (b *Bound) makeRoom() {
	if len(b.keys) > maxKeys {
		maps.DeleteFunc(b.keys, func(_ Key, s state) bool { return s.combinations == nil })
	}
	if len(b.keys) > maxKeys || b.hashes > maxHashes {
		clear(b.keys)
		b.hashes = 0
	}
}

// loadNames loads the names of suspicious links and days.
func (b *Bound) loadNames(ctx context.Context, unknown map[Key]bool) error {
	loaded := make(map[Key]state, len(unknown))
	for key := range unknown {
		s := state{clicks: suspicious, combinations: map[uint64]struct{}{}, rows: map[uint64]struct{}{}}
		for range madeUp {
			s.madeUp = append(s.madeUp, map[uint64]struct{}{})
		}
		loaded[key] = s
	}
	err := b.load(ctx, slices.Collect(maps.Keys(unknown)), func(key Key, quarter int64, names []string) {
		if s, ok := loaded[key]; ok {
			for w, d := range madeUp {
				if bounded(names[d]) {
					s.madeUp[w][b.hash(names[d])] = struct{}{}
				}
			}
			combination := b.hash(names...)
			s.combinations[combination] = struct{}{}
			if quarter != AllDay {
				s.rows[b.row(combination, quarter)] = struct{}{}
			}
		}
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, s := range loaded {
		if b.keys[key].combinations == nil {
			b.keys[key] = s
			b.hashes += len(s.combinations) + len(s.rows)
			for _, names := range s.madeUp {
				b.hashes += len(names)
			}
		}
	}
	return nil
}

// replaceOf replaces names of some links and days, in the whole batch.
func (b *Bound) replaceOf(some map[Key]bool, m *Memory) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range m.batch.LinkID {
		if key := keyOf(m.batch, i); some[key] && b.keys[key].combinations != nil { // not forgotten since
			b.replace(b.keys[key], m, i)
		}
	}
}

// replace replaces names of a click that may not be counted. A made-up name, combination or row may be if it was
// counted before, or if there is room for it.
func (b *Bound) replace(s state, m *Memory, i int) {
	names, quarter := m.row(i), schema.QuarterNumber(m.batch.ClickedAt[i])
	combination := b.hash(names...)
	if counted(s.rows, b.row(combination, quarter)) {
		return
	}
	for w, d := range madeUp {
		if len(s.madeUp[w]) >= most[w] && bounded(names[d]) && !counted(s.madeUp[w], b.hash(names[d])) {
			names[d] = schema.OtherName
			combination = b.hash(names...)
		}
	}
	known, row := counted(s.combinations, combination), b.row(combination, quarter)
	switch {
	case counted(s.rows, row):
	case len(s.rows) < schema.MaxQuarterRows && (known || len(s.combinations) < schema.MaxCombinations):
		b.add(s.rows, row)
		if !known {
			b.add(s.combinations, combination)
		}
		for w, d := range madeUp {
			if bounded(names[d]) {
				b.add(s.madeUp[w], b.hash(names[d]))
			}
		}
	default:
		for _, d := range chosen {
			names[d] = schema.OtherName
		}
	}
	m.set(i, names)
}

func counted(set map[uint64]struct{}, hash uint64) bool {
	_, found := set[hash]
	return found
}

func (b *Bound) add(set map[uint64]struct{}, hash uint64) {
	before := len(set)
	set[hash] = struct{}{}
	b.hashes += len(set) - before
}

// row returns the hash of a combination in a quarter of an hour.
func (b *Bound) row(combination uint64, quarter int64) uint64 {
	return maphash.Comparable(b.seed, [2]uint64{combination, uint64(quarter)})
}

// weight returns how many clicks without a rare name a click stands for. Paths are the only rare names.
func weight(b *schema.ClickBatch, i int) uint32 {
	if bounded(b.Path[i]) {
		return schema.MaxNames / schema.MaxPaths
	}
	return 1
}

// bounded reports whether a made-up name counts as one of schema.MaxNamesOf.
func bounded(name string) bool { return name != "" && name != schema.OtherName }

func (b *Bound) hash(names ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(b.seed)
	for _, name := range names {
		_, _ = h.WriteString(name)
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

func keyOf(b *schema.ClickBatch, i int) Key {
	return Key{b.AccountID[i], b.LinkID[i], schema.DayNumber(b.ClickedAt[i])}
}

// Memory is used again for each batch. The batch that Apply returns is valid until then.
type Memory struct {
	batch    *schema.ClickBatch // given to Apply; its builder owns the columns
	replaced schema.ClickBatch  // with copies of some columns
	columns  []*[]string        // of replaced, by dimension
	copied   []bool             // by dimension
	copies   [][]string         // by dimension
	names    []string           // of a click
}

func (m *Memory) reset(batch *schema.ClickBatch) {
	if m.columns == nil {
		for _, by := range dimensions {
			m.columns = append(m.columns, m.replaced.Names(by))
		}
		m.copied, m.copies = make([]bool, len(dimensions)), make([][]string, len(dimensions))
		m.names = make([]string, len(dimensions))
	}
	m.batch, m.replaced = batch, *batch
	clear(m.copied)
}

// row returns the names of a click.
func (m *Memory) row(i int) []string {
	for d, column := range m.columns {
		m.names[d] = (*column)[i]
	}
	return m.names
}

// set sets the names of a click.
func (m *Memory) set(i int, names []string) {
	for d, column := range m.columns {
		if (*column)[i] == names[d] {
			continue
		}
		if !m.copied[d] {
			m.copied[d], m.copies[d] = true, append(m.copies[d][:0], *column...)
			*column = m.copies[d]
		}
		(*column)[i] = names[d]
	}
}

func (m *Memory) result() *schema.ClickBatch {
	if slices.Contains(m.copied, true) {
		return &m.replaced
	}
	return m.batch
}
