package sqlite

import (
	"bytes"
	"cmp"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"modernc.org/sqlite"
)

// visitorSet is the visitors of a link or an account on a UTC day, as table visitors has them: a level, and for each
// visitor its hash and a bit for every quarter of an hour in which it has clicked, in the order of hashes. When there
// are more than maxVisitors, it is a sample (Gibbons, Distinct Sampling, VLDB 2001). Of level n, it has the visitors
// whose hashes begin with n zero bits, each of which stands for 2^n. A visitor is in a sample or not, however often it
// comes, so nothing can inflate the count.
type visitorSet []byte

const (
	// maxVisitors makes the standard deviation of an estimate 0.8 % at most.
	maxVisitors = 1 << 15
	maxLevel    = 64
	hashBytes   = 8
	// visitorBytes is the size of a visitor in a set.
	visitorBytes = hashBytes + quartersPerDay/8
)

func (s visitorSet) level() byte { return s[0] }

// visitor returns the visitor at an index.
func (s visitorSet) visitor(i int) (hash uint64, at dayQuarters) {
	entry := s[1+i*visitorBytes:][:visitorBytes]
	at = dayQuarters{binary.LittleEndian.Uint64(entry[hashBytes:]), binary.LittleEndian.Uint32(entry[2*hashBytes:])}
	return binary.BigEndian.Uint64(entry), at
}

func (s visitorSet) len() int { return (len(s) - 1) / visitorBytes }

// dayQuarters is a set of quarters of an hour of a day.
type dayQuarters struct {
	early uint64 // the first 64
	late  uint32
}

func (q *dayQuarters) add(quarter uint8) {
	if quarter < 64 {
		q.early |= 1 << quarter
	} else {
		q.late |= 1 << (quarter - 64)
	}
}

func (q dayQuarters) meets(other dayQuarters) bool {
	return q.early&other.early|uint64(q.late&other.late) != 0
}

func (q dayQuarters) append(to []byte) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(to, q.early), q.late)
}

// union returns the visitors of two sets. Either may be nil.
func (s visitorSet) union(other visitorSet) visitorSet {
	if len(s) == 0 || len(other) == 0 {
		return slices.Concat(s, other)
	}
	all := append(make(visitorSet, 0, len(s)+len(other)), max(s.level(), other.level()))
	s, other = s[1:], other[1:]
	for len(s) > 0 && len(other) > 0 {
		order := bytes.Compare(s[:hashBytes], other[:hashBytes])
		if order <= 0 {
			all = append(all, s[:visitorBytes]...)
			s = s[visitorBytes:]
		}
		if order > 0 {
			all = append(all, other[:visitorBytes]...)
		} else if order == 0 {
			at := all[len(all)-visitorBytes:]
			for i := hashBytes; i < visitorBytes; i++ {
				at[i] |= other[i]
			}
		}
		if order >= 0 {
			other = other[visitorBytes:]
		}
	}
	return append(append(all, s...), other...).thin()
}

// thin leaves the visitors that are in the sample, at a level at which there are not too many.
func (s visitorSet) thin() visitorSet {
	for {
		if level := s.level(); level > 0 {
			beyond := sort.Search(s.len(), func(i int) bool {
				hash, _ := s.visitor(i)
				return hash>>(64-level) != 0
			})
			s = s[:1+beyond*visitorBytes]
		}
		if s.len() <= maxVisitors || s.level() == maxLevel {
			return s
		}
		s[0]++
	}
}

// unionVisitors returns the union of two sets of a file.
func unionVisitors(one, other []byte) ([]byte, error) {
	for _, set := range [2][]byte{one, other} {
		if len(set)%visitorBytes != 1 || visitorSet(set).level() > maxLevel {
			return nil, fmt.Errorf("%d bytes are not a set of visitors", len(set))
		}
	}
	return visitorSet(one).union(other), nil
}

func init() {
	sqlite.MustRegisterDeterministicScalarFunction("union_visitors", 2,
		func(_ *sqlite.FunctionContext, sets []driver.Value) (driver.Value, error) {
			one, _ := sets[0].([]byte)
			other, _ := sets[1].([]byte)
			return unionVisitors(one, other)
		})
}

// ownerDay is the ID of a link, or of an account with a minus sign, on a UTC day.
type ownerDay struct{ owner, day int64 }

// visit says that a visitor of an owner has clicked in a quarter of an hour of the day.
type visit struct {
	ownerDay
	visitor uint64
	quarter uint8
}

func compareVisits(a, b visit) int {
	switch {
	case a.owner != b.owner:
		return cmp.Compare(a.owner, b.owner)
	case a.day != b.day:
		return cmp.Compare(a.day, b.day)
	}
	return cmp.Compare(a.visitor, b.visitor)
}

// takeSet returns the set of the first owner and day in visits, which are in the order of compareVisits, and the visits
// of the others.
func takeSet(visits []visit) (visitorSet, []visit) {
	set, key := visitorSet{0}, visits[0].ownerDay
	for len(visits) > 0 && visits[0].ownerDay == key {
		hash, at := visits[0].visitor, dayQuarters{}
		for ; len(visits) > 0 && visits[0].visitor == hash && visits[0].ownerDay == key; visits = visits[1:] {
			at.add(visits[0].quarter)
		}
		set = at.append(binary.BigEndian.AppendUint64(set, hash))
	}
	return set.thin(), visits
}

// visitorSets returns the sets of visits, which it sorts.
func visitorSets(visits []visit) map[ownerDay]visitorSet {
	slices.SortFunc(visits, compareVisits)
	sets := map[ownerDay]visitorSet{}
	for len(visits) > 0 {
		key := visits[0].ownerDay
		sets[key], visits = takeSet(visits)
	}
	return sets
}
