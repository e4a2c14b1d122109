package schema

import (
	"context"
	"time"
)

// MaxShares is how many shares an account may have, ended ones included.
const MaxShares = 100

// Share lets anyone with its secret read a report of an account: of a link, or of the links with a tag, on a domain, or
// of both, or of all links. The secret is shown once and never stored. A share does not change.
type Share struct {
	ID           int64
	AccountID    int64
	Digest       [32]byte  // SHA-256 of the secret, unique
	LinkID       int64     // 0: not the report of a link
	Hash         string    // of the link
	DomainID     *int64    // of the link, or of the links; nil: of any domain
	Tag          string    // "": of links with any tags or none
	ExpiresAt    time.Time // zero: never
	PasswordHash string    // argon2id in PHC string format; "": no password
	HideTargets  bool      // readers do not see where links lead
	TimeZone     string    // of the report if the account names none; "": UTC
	CreatedAt    time.Time
	TokenID      int64 // of the token that made the share, which ends with it; 0: none
}

// ExpiredAt reports whether nobody can read the report any more at a time.
func (s *Share) ExpiredAt(now time.Time) bool {
	return !s.ExpiresAt.IsZero() && !now.Before(s.ExpiresAt)
}

// ShareStore stores shares.
type ShareStore interface {
	// CreateShare stores a share and sets its ID, and its end to the end of its token if that is earlier. CodeConflict if
	// the account has MaxShares, CodeUnauthorized if the token is revoked.
	CreateShare(ctx context.Context, share *Share) error
	// Shares returns all shares of an account, the newest first.
	Shares(ctx context.Context, accountID int64) ([]Share, error)
	// Share returns a share of the account. CodeNotFound if it has no such share.
	Share(ctx context.Context, accountID, id int64) (Share, error)
	// ShareByDigest returns the share with a digest, and its account. CodeNotFound if no share has the digest, if the
	// share has expired at now, if the account is suspended, or if the share's link or domain is deleted.
	ShareByDigest(ctx context.Context, digest [32]byte, now time.Time) (Share, Account, error)
	// DeleteShare deletes a share of the account. CodeNotFound if it has no such share.
	DeleteShare(ctx context.Context, accountID, id int64) error
}
