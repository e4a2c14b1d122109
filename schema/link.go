package schema

import (
	"context"
	"time"
)

// Limits of links.
const (
	MaxURLLen = 2048 // characters, not bytes, of a long URL
	PageSize  = 20   // links on a page of a list
)

// Link is a short link. (DomainID, Hash) is unique.
type Link struct {
	ID        int64
	AccountID int64
	DomainID  int64  // 0: the default domain
	Host      string // the domain's hostname, "" for the default domain; filled by the store when it reads
	Hash      string // case-sensitive
	URL       string // the long URL, as it was given
	Active    bool   // an inactive link answers 410
	Ordinal   int64  // 1, 2, 3, … among its owner's links, without gaps: any page of a list costs the same
	CreatedAt time.Time
}

// LinkStore keeps links.
type LinkStore interface {
	// CreateLink stores link and sets its ID and Ordinal. CodeConflict, and no ordinal spent, if the hash is taken on
	// that domain; CodeNotFound, likewise, if there is no such domain. Of concurrent calls for one hash exactly one
	// succeeds.
	CreateLink(ctx context.Context, link *Link) error
	// Link returns the link with that hash on a domain, active or not. CodeNotFound if there is none.
	Link(ctx context.Context, domainID int64, hash string) (Link, error)
	// OwnedLink returns the account's link with that hash: the one on domainID if it is not nil, else the one on the
	// default domain, else the account's oldest. CodeNotFound if the account has none.
	OwnedLink(ctx context.Context, accountID int64, hash string, domainID *int64) (Link, error)
	// Links returns a page of the account's links, the newest first, PageSize to a page, and the number of all its
	// links, both of one moment. Pages count from 1; one beyond the last is empty.
	Links(ctx context.Context, accountID int64, page int64) (links []Link, total int64, err error)
	// SearchLinks is like Links for those of the account's links whose hash or URL contains query, whatever the case of
	// ASCII letters. Its cost grows with the number of the account's links.
	SearchLinks(ctx context.Context, accountID int64, query string, page int64) (links []Link, total int64, err error)
	// LinksByID returns those of the account's links that have one of the IDs, in any order.
	LinksByID(ctx context.Context, accountID int64, ids []int64) ([]Link, error)
	// SetActive activates or deactivates a link. Idempotent. CodeNotFound if there is no such link.
	SetActive(ctx context.Context, domainID int64, hash string, active bool) error
}
