package schema

import (
	"context"
	"encoding/hex"
	"slices"
	"time"
)

// Incarnation identifies one start of one producer process. It is random, so that no identity is ever used twice, even
// if a process loses its disk.
type Incarnation [16]byte

func (i Incarnation) String() string { return hex.EncodeToString(i[:]) }

// ParseIncarnation is the inverse of Incarnation.String.
func ParseIncarnation(text string) (i Incarnation, err error) {
	id, err := hex.DecodeString(text)
	if err == nil && len(id) != len(i) {
		err = Errorf(CodeInvalid, "%q has not %d bytes", text, len(i))
	}
	if err != nil {
		return i, err
	}
	return Incarnation(id), nil
}

// Lane is a sequence of clicks from one producer. Its clicks are numbered 1, 2, 3, … and shipped in this order to one
// partition. A consumer that remembers the highest number it has seen, the lane's high-water mark, can therefore drop
// every duplicate.
type Lane struct {
	Incarnation Incarnation
	Number      uint32
}

// Limits of a click's fields in bytes. The producer truncates longer values.
const (
	MaxUserAgentLen = 512
	MaxReferrerLen  = 512
	MaxNetworkLen   = 6
	MaxLanguageLen  = 16
	MaxCampaignLen  = 96
	MaxPathLen      = 4*MaxPathName + 1 // more than a name that is shown
)

// Click is the event that a redirect was answered. click.proto defines its encoding.
type Click struct {
	Lane      Lane
	Seq       uint64 // from 1, without gaps in its lane
	LinkID    int64
	AccountID int64     // the link's owner
	ClickedAt time.Time // to the millisecond
	UserAgent []byte    // as sent by the client
	Referrer  []byte    // as sent by the client
	Network   []byte    // the client's address cut to /24 (3 bytes) or /48 (6 bytes); empty if unknown
	Language  []byte    // the first language range of Accept-Language, as sent by the client; empty without one
	Route     []byte    // the name of the rule or variant that has sent the visitor elsewhere; empty for the link's URL
	// utm_source, utm_medium and utm_campaign of where the visitor was sent, as click.proto says; empty without them
	Campaign []byte
	Path     []byte // behind the link's alias, without the slash in front, decoded once; empty for the alias itself
	Limited  bool   // the click counts towards the link's limit
	Visitor  uint64 // a keyed hash of the visitor, the same on all links of an account for one UTC day; 0: unknown
}

// ClickBatch is a block of clicks from one partition, as columns: element i of each slice belongs to click i. Its
// builder owns the slices and reuses them; a store copies what it keeps.
type ClickBatch struct {
	Partition int
	Base      int64 // the partition's Position.Next before the batch
	Next      int64 // the partition's Position.Next after it: the offset after the last record read, counted or dropped
	// BaseEpoch is the partition's Position.Epoch before the batch, and Epoch the one after it: the same, or BaseEpoch+1
	// in the first batch of another log. Offset and Next are offsets in Epoch's log, Base is an offset in BaseEpoch's log.
	BaseEpoch, Epoch uint32
	// Time is the timestamp of the first click's record. A retry that reads on from Base finds the same one, so a store
	// may partition its data by it.
	Time time.Time

	Offset    []int64 // of the click's record: ascending, below Next, and not below Base in the same epoch
	Lane      []Lane
	Seq       []uint64
	LinkID    []int64
	AccountID []int64
	ClickedAt []time.Time // UTC
	Device    []Device
	Browser   []string
	Referrer  []string // the host that the click came from, lower case; "" if unknown; see MaxNames
	Country   []string // ISO 3166-1 alpha-2, upper case; "" if unknown
	OS        []string // operating system, from a list; "" if unknown
	Language  []string // ISO 639, lower case, from a list; "" if unknown
	Route     []string // the link's rule or variant; "" for its URL
	Campaign  []string // "newsletter / email / spring", of the UTM parameters; "" without them; see MaxNames
	Path      []string // behind the link's alias, such as "docs/install"; "" for the alias itself; see MaxPaths
	Visitor   []uint64 // of Click, 0 for bots

	Gaps []Gap // before clicks of the batch; any number
}

// Len returns the number of clicks.
func (b *ClickBatch) Len() int { return len(b.Offset) }

// Last returns the last click, of at least one.
func (b *ClickBatch) Last() CountedRecord {
	last := b.Len() - 1
	return CountedRecord{Offset: b.Offset[last], Lane: b.Lane[last], Seq: b.Seq[last]}
}

// Dimension is a property of clicks by which a report breaks them down.
type Dimension string

// The dimensions. Device has the values of type Device.
const (
	ByDevice   Dimension = "device"
	ByBrowser  Dimension = "browser"
	ByOS       Dimension = "os"
	ByLanguage Dimension = "language"
	ByReferrer Dimension = "referrer"
	ByCountry  Dimension = "country"
	ByRoute    Dimension = "route"
	ByCampaign Dimension = "campaign"
	ByPath     Dimension = "path"
)

// NameKind says who chooses the names of a dimension. Stores derive from it how they keep names, and how many.
type NameKind int

const (
	// FixedNames come from a list. A visitor can choose among few of them.
	FixedNames NameKind = iota
	// PickedNames come from a list. A visitor can claim any of them.
	PickedNames
	// OwnedNames are written by owners of links, a few per link.
	OwnedNames
	// MadeUpNames are written by clients, any number of them: see MaxNamesOf.
	MadeUpNames
)

// dimensions has the dimensions, their kinds of names and their columns, in the order in which reports show them.
// Stores, reports and pages iterate over it. Files keep the order of dimensions with the same kinds of names: a new
// dimension comes after them.
var dimensions = []struct {
	by     Dimension
	names  NameKind
	column func(*ClickBatch) *[]string
}{
	{ByDevice, FixedNames, func(b *ClickBatch) *[]string { return &b.Device }},
	{ByBrowser, PickedNames, func(b *ClickBatch) *[]string { return &b.Browser }},
	{ByOS, PickedNames, func(b *ClickBatch) *[]string { return &b.OS }},
	{ByLanguage, PickedNames, func(b *ClickBatch) *[]string { return &b.Language }},
	{ByReferrer, MadeUpNames, func(b *ClickBatch) *[]string { return &b.Referrer }},
	{ByCountry, FixedNames, func(b *ClickBatch) *[]string { return &b.Country }},
	{ByRoute, OwnedNames, func(b *ClickBatch) *[]string { return &b.Route }},
	{ByCampaign, MadeUpNames, func(b *ClickBatch) *[]string { return &b.Campaign }},
	{ByPath, MadeUpNames, func(b *ClickBatch) *[]string { return &b.Path }},
}

// Dimensions returns the dimensions whose names are of the given kinds, or all, in the order in which reports show
// them.
func Dimensions(kinds ...NameKind) []Dimension {
	all := make([]Dimension, 0, len(dimensions))
	for _, d := range dimensions {
		if len(kinds) == 0 || slices.Contains(kinds, d.names) {
			all = append(all, d.by)
		}
	}
	return all
}

// MaxNamesOf returns about how many names of a dimension, of MadeUpNames, a link has at most on a UTC day.
func MaxNamesOf(by Dimension) int {
	if by == ByPath {
		return MaxPaths
	}
	return MaxNames
}

// Names returns the column of a dimension: element i is of click i.
func (b *ClickBatch) Names(by Dimension) *[]string {
	for _, d := range dimensions {
		if d.by == by {
			return d.column(b)
		}
	}
	panic("no dimension " + by)
}

// Reset empties the batch, which begins at an offset of epoch 0, and keeps its memory.
func (b *ClickBatch) Reset(partition int, base int64) {
	b.Partition, b.Base, b.Next, b.Time = partition, base, base, time.Time{}
	b.BaseEpoch, b.Epoch = 0, 0
	b.Offset, b.Lane, b.Seq = b.Offset[:0], b.Lane[:0], b.Seq[:0]
	b.LinkID, b.AccountID, b.ClickedAt = b.LinkID[:0], b.AccountID[:0], b.ClickedAt[:0]
	for _, d := range dimensions {
		names := d.column(b)
		*names = (*names)[:0]
	}
	b.Visitor, b.Gaps = b.Visitor[:0], b.Gaps[:0]
}

// Position is how far a partition has been counted. An offset means a record of one log only. A topic that is created
// again, or a broker that loses the end of its log, gives the same offsets to other records. Epoch therefore numbers
// the logs that a partition has had, and Last identifies a record by which a log is recognized.
type Position struct {
	Epoch uint32        // of the log that Next belongs to; 0 for the first one
	Next  int64         // the offset of the first record to read; 0 for a new partition
	Last  CountedRecord // the last counted click; meaningless for a new partition
}

// CountedRecord is a counted click and where it is in its log. If it is the last counted one, Seq is its lane's
// high-water mark, since the numbers of a lane only grow.
type CountedRecord struct {
	Offset int64
	Lane   Lane
	Seq    uint64
}

// CheckEpoch returns CodeInternal unless the batch stays in its epoch or begins the next one.
func (b *ClickBatch) CheckEpoch() error {
	if b.Epoch != b.BaseEpoch && b.Epoch != b.BaseEpoch+1 {
		return Errorf(CodeInternal, "a batch leads from epoch %d to %d", b.BaseEpoch, b.Epoch)
	}
	return nil
}

// ClickStore counts clicks. It is the source of truth for which clicks of a lane are counted: it changes counts and
// marks atomically.
type ClickStore interface {
	// LaneMarks returns the marks of lanes, in their order: each is the lane's highest mark, in all partitions of a
	// PositionStore, or 0 for a lane without counted clicks. A lane has marks in several partitions if the topic has lost
	// the one that the lane was bound to.
	LaneMarks(ctx context.Context, lanes []Lane) ([]uint64, error)
	// InsertClicks counts a batch with at least one click and advances the marks of its lanes, atomically. When it returns
	// nil, both are on the disk. CodeConflict, and nothing is counted, if the batch is already counted: a PositionStore
	// compares positions, any other store compares the lowest number of each lane with the lane's mark. After any other
	// error the batch may or may not be counted: the caller discards its state and asks the store. The batch's Gaps are
	// stored if the batch is counted, and may be stored if it is not.
	InsertClicks(ctx context.Context, batch *ClickBatch) error
	// LaneCounts calls each once for every lane that has counted clicks, in any order, until each returns an error, which
	// it returns. All counts are of one moment. It reads every lane: a command may take its time. each does not call the
	// store.
	LaneCounts(ctx context.Context, each func(LaneCount) error) error
	// ClickSums returns the number of clicks in each aggregate of statistics and reports, by the aggregate's name, each at
	// some moment during the call. It reads all rows: it is for commands.
	ClickSums(ctx context.Context) (map[string]uint64, error)
	// LaneGaps returns the gaps of a lane, in the order of their numbers: the first MaxGaps of them.
	LaneGaps(ctx context.Context, lane Lane) ([]Gap, error)
	// LinkStats returns the counts of a link. They are zero for a link without clicks.
	LinkStats(ctx context.Context, linkID int64) (Stats, error)
	// ClickCounts returns the TotalClicks of each of these links of an account that has clicks.
	ClickCounts(ctx context.Context, accountID int64, linkIDs []int64) (map[int64]int64, error)
	// ClickTotals returns the clicks of each of these links, and the clicks on all links of each of these accounts. Links
	// and accounts without clicks are left out. All numbers are of the same moment.
	ClickTotals(ctx context.Context, links, accounts []int64) (ofLinks, ofAccounts map[int64]Period, err error)
	// Readers returns how many statistics and reports the store reads at the same time.
	Readers() int
}

// PositionStore is a ClickStore that counts a topic. It is the source of truth for how far each partition has been
// counted: it changes positions with counts and marks.
type PositionStore interface {
	ClickStore
	// Position returns the partition's position, at a cost that does not depend on the number of lanes. Next may be lower
	// than the last batch's Next, but not lower than the offset after the last counted click: all records in between were
	// dropped.
	//
	// InsertClicks returns CodeConflict if the partition's position is not batch.Base of batch.BaseEpoch: another worker
	// has counted. It does not compare marks. Afterwards the position is batch.Next of batch.Epoch, also if Next is lower
	// than Base. CodeInternal if Epoch is neither BaseEpoch nor BaseEpoch+1.
	Position(ctx context.Context, partition int) (Position, error)
}

// CompactedMonth is a month of clicks whose rows a store has replaced by fewer rows with the same results.
type CompactedMonth struct {
	Month                 uint32 // as the store names it
	RowsBefore, RowsAfter uint64
}
