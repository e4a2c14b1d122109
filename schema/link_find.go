package schema

import (
	"context"
	"slices"
)

// FindLink returns a link by its domain and hash. The link may be inactive or deleted. The error has CodeNotFound if no
// link has the hash.
func FindLink(ctx context.Context, store interface {
	LinksByHash(ctx context.Context, keys []LinkKey) ([]Link, error)
}, domainID int64, hash string) (Link, error) {
	links, err := store.LinksByHash(ctx, []LinkKey{{domainID, hash}})
	if err == nil && len(links) == 0 {
		err = Errorf(CodeNotFound, "no link %q on domain %d", hash, domainID)
	}
	if err != nil {
		return Link{}, err
	}
	return links[0], nil
}

// FindOwnedLink returns a link of an account by its hash. If domainID is nil, a link on the default domain comes first,
// then the oldest link. The error has CodeNotFound if the account has no link with the hash, or none on that domain.
func FindOwnedLink(ctx context.Context, store interface {
	OwnedLinks(ctx context.Context, accountID int64, hashes []string) ([]Link, error)
}, accountID int64, hash string, domainID *int64) (Link, error) {
	links, err := store.OwnedLinks(ctx, accountID, []string{hash})
	if err != nil {
		return Link{}, err
	}
	at := slices.IndexFunc(links, func(link Link) bool { return domainID == nil || link.DomainID == *domainID })
	if at < 0 {
		return Link{}, Errorf(CodeNotFound, "no link %q of account %d", hash, accountID)
	}
	return links[at], nil
}
