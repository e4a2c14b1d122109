package linkstore

import (
	"context"
	"time"

	"linkstream/schema"
)

const (
	externalLink = selectLink + `
	WHERE l.account_id = $1 AND l.external_id = $2
		AND (l.ordinal > 0 OR l.updated_at > $3 AND (l.domain_id = 0 OR d.id IS NOT NULL))`
	// externalHolders says which external IDs of accounts are in use: NULL if none is, true by a link that loses it.
	externalHolders = `
	SELECT place, (SELECT l.ordinal < 0 AND ` + lost + ` FROM links l
		WHERE l.account_id = k.domain_id AND l.external_id = k.hash LIMIT 1)
	FROM {keys: $1 $2} ORDER BY place`
	// freeExternal takes external IDs from deleted links that cannot be restored.
	freeExternal = `
	UPDATE links AS l SET external_id = NULL
	WHERE l.account_id = $1 AND l.external_id {in: $2} AND +l.ordinal < 0 AND ` + lost
	lost = `(l.updated_at <= $3
		OR l.domain_id <> 0 AND NOT EXISTS (SELECT 1 FROM domains d WHERE d.id = l.domain_id))`
)

// ExternalLink implements schema.LinkStore.
func (s *Store) ExternalLink(
	ctx context.Context, accountID int64, externalID string, deletedAfter time.Time,
) (link schema.Link, err error) {
	err = get(ctx, s.db, linkFields(&link), externalLink, accountID, externalID, deletedAfter)
	return link, wrap(err, "read link with external ID %q of account %d", externalID, accountID)
}

// whatIsTaken returns why an edit was in conflict with another link.
func (s *Store) whatIsTaken(ctx context.Context, link schema.Link, edit schema.LinkEdit) error {
	if edit.Names == nil {
		return schema.ErrExternalIDTaken
	}
	if edit.ExternalID != nil {
		holder, err := s.ExternalLink(ctx, link.AccountID, *edit.ExternalID, time.Time{})
		if err == nil && holder.ID != link.ID {
			return schema.ErrExternalIDTaken
		}
	}
	return schema.ErrHashTaken
}

// freeExternal adds the statement that lets another link have external IDs.
func (b *Batch) freeExternal(accountID int64, ids []string, at time.Time) {
	b.exec(freeExternal, accountID, ids, at.Add(-schema.TrashTTL))
}

// externalKey names a link of an account.
type externalKey struct {
	account int64
	id      string
}

// claim lets each external ID and hash belong to one link. Links that do not get theirs fail.
func (c *creation) claim(ctx context.Context, db Conn) error {
	if err := c.claimExternal(ctx, db); err != nil {
		return err
	}
	return c.claimHashes(ctx, db)
}

// claimExternal gives each external ID to the first of the links that have it. The others fail, and those whose ID is
// in use.
func (c *creation) claimExternal(ctx context.Context, db Conn) error {
	var some []int
	var accounts []int64
	var ids []string
	var newest time.Time
	for i := range c.links {
		if l := &c.links[i]; l.ExternalID != "" && l.err == nil && l.stand == 0 {
			some, accounts, ids = append(some, i), append(accounts, l.AccountID), append(ids, l.ExternalID)
			if l.CreatedAt.After(newest) {
				newest = l.CreatedAt
			}
		}
	}
	if len(some) == 0 || c.atOnce && c.unused {
		return nil // most likely all are free; otherwise the insert fails
	}
	args := []any{accounts, ids, newest.Add(-schema.TrashTTL)}
	rows, err := db.Query(ctx, statement(externalHolders, args))
	if err != nil {
		return err
	}
	var place int
	var lost *bool
	var freed []string
	granted := make(map[externalKey]bool, len(some))
	err = each(rows, []any{&place, &lost}, func() error {
		link := &c.links[some[place-1]]
		key := externalKey{link.AccountID, link.ExternalID}
		if granted[key] || lost != nil && !*lost {
			link.err = schema.ErrExternalIDTaken
			return nil
		}
		granted[key] = true
		if lost != nil {
			freed = append(freed, link.ExternalID)
		}
		return nil
	})
	switch {
	case err != nil || len(freed) == 0:
		return err
	case c.atOnce:
		return schema.ErrExternalIDTaken // it is freed under the lock
	}
	var b Batch
	b.freeExternal(accounts[0], freed, newest)
	return db.Send(ctx, &b)
}

// RestoreAs implements schema.LinkStore. It edits the link before it restores it, so that webhooks get one event.
func (s *Store) RestoreAs(
	ctx context.Context, link *schema.Link, edit schema.LinkEdit, deletedAfter, at time.Time,
) error {
	edit.Unchanged = true
	var restored schema.Link
	err := s.updateInTurn(ctx, link.AccountID, func(tx Conn) error {
		var b Batch
		b.get(value(new(int64)), lockAccount, link.AccountID)
		b.execOne(updateDeleted, append(updateArgs(link, edit, at), deletedAfter)...)
		b.restoreLinks(new(int64), link.AccountID, []int64{link.ID}, deletedAfter, at)
		b.get(linkFields(&restored), linkByID, link.ID)
		return tx.Send(ctx, &b)
	})
	if schema.ErrorCode(err) == schema.CodeNotFound {
		err = errChanged
	}
	if err != nil {
		return wrap(err, "restore link %d of account %d with other values", link.ID, link.AccountID)
	}
	*link = restored
	return nil
}
