package schema

import (
	"encoding/hex"
	"iter"
	"time"
)

// ErrMoved means that the data has moved to other engines: nothing changes any more in the store that was asked.
var ErrMoved = Errorf(CodeUnavailable, "the data has moved to other engines")

// MoveID identifies the data that moves from one kind of engines to another. It is random. The new stores remember it,
// so that a move that is repeated recognizes what it has done, and the data of another service is never mixed in.
type MoveID [16]byte

func (i MoveID) String() string { return hex.EncodeToString(i[:]) }

// TableRows is the rows of a table of a link store, for a copy in another one. The stores have the same tables and
// columns.
type TableRows struct {
	Name    string
	Columns []string
	// LastID is the highest ID that a row of the table has ever had, 0 if the table does not number its rows.
	LastID int64
	// Rows are read once. A row has an int64, a string, a []byte or nil per column, and is valid until the next one. Times
	// are milliseconds of Unix time.
	Rows iter.Seq2[[]any, error]
}

// CountedVisitor is a visitor in a quarter of an hour.
type CountedVisitor struct {
	// one of them, the other one is 0: the visitor is one of the link, or of all links of the account
	LinkID, AccountID int64
	Begin             time.Time // of the quarter of an hour, UTC
	Visitor           uint64
	Level             uint8 // the visitor stands for 2^Level, whose hashes differ in their highest Level bits
}

// ClickCount counts the clicks on a link in a quarter of an hour with the same names. There may be several of the same
// kind.
type ClickCount struct {
	LinkID, AccountID int64
	Begin             time.Time // of the quarter of an hour, UTC
	Names             map[Dimension]string
	Total             int64
}
