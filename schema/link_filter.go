package schema

import (
	"cmp"
	"time"
)

// LinkFilter says which of an account's links a list has, and in which order. The zero LinkFilter lists all, the newest
// first.
type LinkFilter struct {
	Words       []LinkWord // a link must match all of them
	Tag         string     // "": any
	DomainID    *int64     // nil: any
	Redirects   *bool      // the value of Link.Redirects; nil: either
	ExpiredAt   time.Time  // not zero: links that have expired at this time
	OldestFirst bool
	// CreatedFrom and CreatedBefore, if not zero, bound the times of creation.
	CreatedFrom, CreatedBefore time.Time
	// DeletedAfter, if not zero, selects links that were deleted after a time and can be restored, the last deleted first.
	DeletedAfter time.Time
	// ChangedAt, if not zero, selects those whose last change or deletion was at that time, for LinkIDs.
	ChangedAt time.Time
	Rows      int64 // links per page; 0: PageSize
}

// Size returns the number of links per page.
func (f LinkFilter) Size() int64 { return cmp.Or(f.Rows, PageSize) }

// LinkWord is a word of a search. A link matches it if the Fold of one of its names, its title or one of its tags
// contains the word's Fold, or the FoldURL of its URL the word's FoldURL, or if it has Key in any letter case.
type LinkWord struct {
	Text string   // "": none
	Key  *LinkKey // nil: none
}

// IsZero reports whether the filter lists all links, the newest first.
func (f LinkFilter) IsZero() bool {
	return len(f.Words) == 0 && f.Tag == "" && f.DomainID == nil && f.Redirects == nil && f.ExpiredAt.IsZero() &&
		!f.OldestFirst && f.CreatedFrom.IsZero() && f.CreatedBefore.IsZero() && f.DeletedAfter.IsZero()
}
