package resolve

import (
	"hash/maphash"
	"sync/atomic"
)

// changes counts changes of keys, in memory of a fixed size. A change of a name may change the answer to every question
// with the same stem: names that begin with it, or with which it begins, and other spellings. So the count of a
// question becomes another one with each change of a key with its stem. Sometimes it becomes another one for nothing,
// which costs a look-up: stems share counts.
type changes struct {
	seed   maphash.Seed
	all    atomic.Uint64
	counts []atomic.Uint64
}

const (
	stemCounts = 4 << 10
	maxStem    = 64
)

func newChanges() changes {
	return changes{seed: maphash.MakeSeed(), counts: make([]atomic.Uint64, stemCounts)}
}

// of returns the count of a question. A later count is greater.
func (c *changes) of(question []byte) uint64 { return c.all.Load() + c.count(question).Load() }

// note counts a change of a key.
func (c *changes) note(key []byte) { c.count(key).Add(1) }

// noteAll counts a change of every key.
func (c *changes) noteAll() { c.all.Add(1) }

// count returns the count of a key's stem: its first 8 bytes, which are the domain's ID in keys of links, then letters,
// digits, - and _ in lower case, up to any other character. No spelling of a name and no path behind it differ there.
func (c *changes) count(key []byte) *atomic.Uint64 {
	var buffer [maxStem]byte
	stem := append(buffer[:0], key[:min(8, len(key))]...)
	for _, char := range key[len(stem):min(len(key), maxStem)] {
		switch {
		case 'A' <= char && char <= 'Z':
			char += 'a' - 'A'
		case 'a' <= char && char <= 'z', '0' <= char && char <= '9', char == '-', char == '_':
		default:
			return c.at(stem)
		}
		stem = append(stem, char)
	}
	return c.at(stem)
}

func (c *changes) at(stem []byte) *atomic.Uint64 {
	return &c.counts[maphash.Bytes(c.seed, stem)%stemCounts]
}
