package schema

import (
	"context"
	"slices"
)

// FindLink returns the link at a hash of a domain, which may be inactive or deleted. It fails with CodeNotFound if there is none.
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

// FindOwnedLink returns the account's link with that hash: if domainID is not nil, the one on that domain; otherwise the one on the
// default domain or, if there is none, the oldest. It fails with CodeNotFound if the account has no
// such link.
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
