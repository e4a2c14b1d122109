package schema

import (
	"context"
	"encoding/hex"
	"time"
)

// Incarnation names one start of one producer process. It is drawn at random, so that an identity is never used
// twice, even by a process whose disk was wiped.
type Incarnation [16]byte

func (i Incarnation) String() string { return hex.EncodeToString(i[:]) }

// Lane is a sequence of clicks with one producer: the clicks of a lane are numbered 1, 2, 3, … and shipped in that
// order to one partition. A consumer that remembers the highest number it has seen, the lane's high-water mark, can
// therefore drop every repetition.
type Lane struct {
	Incarnation Incarnation
	Number      uint32
}

// Limits of a click's fields in bytes. What is longer is cut by the producer.
const (
	MaxUserAgentLen = 512
	MaxReferrerLen  = 512
	MaxNetworkLen   = 6
)

// Click is the event that a redirect was answered; click.proto is its form on the topic.
type Click struct {
	Lane      Lane
	Seq       uint64 // dense from 1 in its lane
	LinkID    int64
	AccountID int64     // the link's owner; 0 in clicks of before it was recorded
	ClickedAt time.Time // to the millisecond
	UserAgent []byte    // as sent by the client
	Referrer  []byte    // as sent by the client
	Network   []byte    // the client's address cut to /24 (3 bytes) or /48 (6 bytes); empty if unknown
}

// ClickBatch is a block of clicks of one partition as columns: element i of each is click i. Its builder owns the
// slices and reuses them; a store copies what it keeps.
type ClickBatch struct {
	Partition int
	Base      int64 // Position.Next of the partition when the batch was begun: what the batch follows
	Next      int64 // the offset after the last record that the batch accounts for, dropped records included
	// Time is that of the first click's record in the topic. Whoever reads the records that follow Base finds the same
	// one, so a store may divide its data by it.
	Time time.Time

	Offset    []int64 // of the click's record, ascending, Base <= Offset < Next
	Lane      []Lane
	Seq       []uint64
	LinkID    []int64
	AccountID []int64
	ClickedAt []time.Time // UTC
	Device    []Device
	Browser   []string
	Referrer  []string // the host that the click came from, lower case; "" if there is none, or none is told
	Country   []string // ISO 3166-1 alpha-2, upper case; "" if unknown
}

// Len returns the number of clicks.
func (b *ClickBatch) Len() int { return len(b.Offset) }

// Reset empties the batch for another one and keeps its memory.
func (b *ClickBatch) Reset(partition int, base int64) {
	b.Partition, b.Base, b.Next, b.Time = partition, base, base, time.Time{}
	b.Offset, b.Lane, b.Seq = b.Offset[:0], b.Lane[:0], b.Seq[:0]
	b.LinkID, b.AccountID, b.ClickedAt = b.LinkID[:0], b.AccountID[:0], b.ClickedAt[:0]
	b.Device, b.Browser = b.Device[:0], b.Browser[:0]
	b.Referrer, b.Country = b.Referrer[:0], b.Country[:0]
}

// Position says how far a partition has been counted.
type Position struct {
	Next  int64           // the offset of the first record not yet accounted for; 0 for a new partition
	Marks map[Lane]uint64 // the high-water mark of each lane seen in the partition
}

// ClickStore counts clicks. It is the source of truth for how far the topic has been counted: clicks, marks and
// position change together or not at all.
type ClickStore interface {
	// Position returns the partition's position; the map is the caller's. A store may answer a Next as low as one
	// past the last counted click, where the records between it and the last batch's Next were all dropped.
	Position(ctx context.Context, partition int) (Position, error)
	// InsertClicks counts a batch that has at least one click, and moves its lanes' marks and the partition's
	// position, all at once. CodeConflict, and nothing counted, if the partition is no longer where the batch begins:
	// another worker was here. After any other error the batch may be counted or not: the caller forgets its state
	// and asks for the Position again.
	InsertClicks(ctx context.Context, batch *ClickBatch) error
	// LinkStats returns a link's counts; all zero for a link without clicks.
	LinkStats(ctx context.Context, linkID int64) (Stats, error)
	// ClickCounts returns the TotalClicks of each link; those without clicks are missing.
	ClickCounts(ctx context.Context, linkIDs []int64) (map[int64]int64, error)
}
