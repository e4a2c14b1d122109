package schema

import (
	"encoding/hex"
	"iter"
)

// ErrMoved means that the data has moved to other engines: nothing changes any more in the store that was asked.
var ErrMoved = Errorf(CodeUnavailable, "the data has moved to other engines")

// MoveID identifies the data that moves from one kind of engines to another. It is random. The new stores remember it, so that a
// move that is repeated recognizes what it has done, and the data of another service is never mixed in.
type MoveID [16]byte

func (i MoveID) String() string { return hex.EncodeToString(i[:]) }

// TableRows is the rows of a table of a link store, for a copy in another one. The stores have the same tables and columns.
type TableRows struct {
	Name    string
	Columns []string
	// LastID is the highest ID that a row of the table has ever had, 0 if the table does not number its rows.
	LastID int64
	// Rows are read once. A row has an int64, a string, a []byte or nil per column, and is valid until the next one. Times are
	// milliseconds of Unix time.
	Rows iter.Seq2[[]any, error]
}

// DayCounts is what a store that keeps sums has counted of the clicks on a link on one UTC day.
type DayCounts struct {
	LinkID, Day int64         // Day as of DayNumber
	Clients     []ClientCount // of all clicks
	Referrers   []NameCount   // of people's clicks that have one
	Countries   []NameCount   // of people's clicks that have one
	Systems     []NameCount   // of people's clicks that have one
	Languages   []NameCount   // of people's clicks that have one
	Owners      []OwnerCount  // of clicks that have an account
}

// ClientCount counts the clicks by a device and a browser.
type ClientCount struct {
	Device  Device
	Browser string
	Total   int64
}

// OwnerCount counts the clicks that belong to an account.
type OwnerCount struct {
	AccountID    int64
	People, Bots int64
}
