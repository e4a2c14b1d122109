//go:build !race

package simulation_test

import (
	"fmt"
	"maps"
	"slices"

	"linkstream/schema"
)

// How the model fences inserts that are not atomic with the check of the position. The window must have room for all
// inserts of the time in which an insert is valid: one per second here, and those that expire in the same second.
const (
	insertWithin = 4 // seconds from the check of the position to the insert
	tokenWindow  = 5
	maxSends     = 3 // of a batch
	maxEarlier   = 3 // positions that a stale read may return
)

// insertOnce counts a batch unless the store remembers its token, which is the same for all batches with the same Base.
// It reports whether it did.
func (s *store) insertOnce(b *schema.ClickBatch, lost int) bool {
	token := fmt.Sprint(b.Partition, b.BaseEpoch, b.Base, lost)
	if slices.Contains(s.tokens, token) {
		return false
	}
	s.tokens = append(s.tokens, token)
	s.tokens = s.tokens[max(0, len(s.tokens)-s.window):]
	s.apply(b)
	return true
}

// counted reports whether the store has the batch, or one of the same records.
func (s *store) counted(b *schema.ClickBatch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.partition(b.Partition)
	return p.epoch == b.Epoch && p.next == b.Next && p.last.Offset == b.Offset[b.Len()-1]
}

// earlierPositions returns what a replica may answer that does not have the latest inserts.
func (s *store) earlierPositions(number int) []schema.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.partition(number).earlier
}

// backup is the state of a store at some time.
type backup struct {
	partitions map[int]*partition
	rows       []row
}

func (s *store) backup() *backup {
	b := &backup{partitions: make(map[int]*partition), rows: slices.Clone(s.rows)}
	for number, p := range s.partitions {
		c := *p
		c.marks, c.clicks, c.earlier = maps.Clone(p.marks), maps.Clone(p.clicks), nil
		b.partitions[number] = &c
	}
	return b
}

// restore sets the store back. It keeps the tokens, if its table is the same one, or forgets them.
func (s *store) restore(b *backup, keepTokens bool) {
	again := store{partitions: b.partitions, rows: b.rows}
	copied := again.backup() // the backup may be restored again
	s.partitions, s.rows = copied.partitions, copied.rows
	if !keepTokens {
		s.tokens = nil
	}
}
