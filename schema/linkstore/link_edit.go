package linkstore

import (
	"context"
	"time"

	"linkstream/schema"
)

const (
	// updateLink changes no row if the link is not as $11 to $17, or $19, have it.
	updateLink = `
	UPDATE links SET url = coalesce($2, url), title = coalesce($3, title), tags = coalesce($4, tags),
		active = coalesce($5, active), expires_at = CASE WHEN $6 THEN $7 ELSE expires_at END,
		expired_url = coalesce($8, expired_url), forward_query = coalesce($9, forward_query),
		extension = coalesce($18, extension), password_hash = coalesce($20, password_hash), updated_at = $10
	WHERE id = $1 AND ordinal > 0 AND (CAST($18 AS text) IS NULL OR extension = $19)
		AND (NOT $11 OR (url, title, tags, expired_url, forward_query) = ($12, $13, $14, $15, $16)
			AND expires_at IS NOT DISTINCT FROM $17)`
	linkByID  = selectLink + `WHERE l.id = $1 AND l.ordinal > 0`
	lockLinks = selectLink + `
	WHERE l.id {in: $2} AND +l.account_id = $1 AND +l.ordinal > 0 ORDER BY l.id{for update of l}`
	deleteLinks = `
	UPDATE links SET ordinal = -ordinal, updated_at = $3 WHERE id {in: $2} AND +account_id = $1 AND +ordinal > 0
	RETURNING id, -ordinal`
	countGap = `
	INSERT INTO link_gaps (account_id, block, missing) VALUES ($1, $2, $3)
	ON CONFLICT (account_id, block) DO UPDATE SET missing = link_gaps.missing + excluded.missing`
	countDeleted = `UPDATE accounts SET deleted_links = deleted_links + $2 WHERE id = $1`
	ownDomains   = `SELECT id FROM domains WHERE account_id = $1 ORDER BY id{for key share}`
	restoreLink  = `
	UPDATE links SET ordinal = -ordinal, remade = false, updated_at = $5 WHERE ordinal < 0 AND url <> '' AND id = (
		SELECT l.id FROM links l
		WHERE l.` + ofOwner + ` AND l.hash = $2 AND +l.ordinal < 0 AND l.url <> '' AND l.updated_at > $4
			AND l.domain_id {among}` + domainsOfOwner + `{end} AND (CAST($3 AS bigint) IS NULL OR l.domain_id = $3)
		ORDER BY l.domain_id <> 0, l.ordinal DESC LIMIT 1)
	RETURNING id, ordinal`
	linkRemade = `
	SELECT 1 FROM links WHERE ` + ofOwner + ` AND hash = $2 AND +ordinal > 0 AND remade
		AND domain_id {among}` + domainsOfOwner + `{end} AND (CAST($3 AS bigint) IS NULL OR domain_id = $3) LIMIT 1`
	purgeLinks = `
	UPDATE links SET url = '', title = '', tags = '', active = false, expires_at = NULL, expired_url = '',
		forward_query = false, extension = '', password_hash = ''
	WHERE id {among}
		SELECT id FROM links WHERE ordinal < 0 AND url <> '' AND updated_at <= $1 LIMIT $2{for update skip locked}{end}`
	setTakenDown = `UPDATE links SET taken_down = $3 WHERE domain_id = $1 AND hash = $2`
)

// UpdateLink implements schema.LinkStore.
func (s *Store) UpdateLink(ctx context.Context, link *schema.Link, edit schema.LinkEdit, at time.Time) error {
	var changed int64
	var updated schema.Link
	var b Batch
	b.count(&changed, updateLink, updateArgs(link, edit, at)...)
	b.get(linkFields(&updated), linkByID, link.ID)
	err := s.db.Send(ctx, &b)
	if err == nil && changed == 0 {
		err = schema.Errorf(schema.CodeConflict, "it has changed")
	}
	if err != nil {
		return wrap(err, "update link %d", link.ID)
	}
	*link = updated
	return nil
}

// updateArgs returns the arguments of updateLink.
func updateArgs(link *schema.Link, edit schema.LinkEdit, at time.Time) []any {
	return []any{link.ID, edit.URL, edit.Title, schema.TagsColumn{List: edit.Tags}, edit.Active, edit.ExpiresAt != nil,
		edit.ExpiresAt, edit.ExpiredURL, edit.ForwardQuery, at, edit.Unchanged, link.URL, link.Title,
		schema.TagsColumn{List: &link.Tags},
		link.ExpiredURL, link.ForwardQuery, link.ExpiresAt, edit.BehaviourText(), link.Behaviour.Text(), edit.PasswordHash}
}

// DeleteLink implements schema.LinkStore.
func (s *Store) DeleteLink(ctx context.Context, link schema.Link, at time.Time) error {
	err := s.db.Update(ctx, func(tx Conn) error {
		if err := get(ctx, tx, value(new(int64)), lockAccount, link.AccountID); err != nil {
			return err
		}
		deleted, err := deleteAll(ctx, tx, link.AccountID, []int64{link.ID}, at)
		return atLeastOne(int64(len(deleted)), err)
	})
	return wrap(err, "delete link %d of account %d", link.ID, link.AccountID)
}

// deleteAll deletes links of an account that the transaction has locked, as statements that create links do, and
// returns the IDs of the links that it has found.
func deleteAll(ctx context.Context, tx Conn, accountID int64, ids []int64, at time.Time) (deleted []int64, err error) {
	blocks := map[int64]int64{} // how many links are missing, by block
	var id, ordinal int64
	var deletion, counts Batch
	deletion.rows(func(rows Rows) error {
		return each(rows, []any{&id, &ordinal}, func() error {
			deleted = append(deleted, id)
			blocks[ordinal/schema.OrdinalBlock]++
			return nil
		})
	}, deleteLinks, accountID, ids, at)
	if err := tx.Send(ctx, &deletion); err != nil || len(deleted) == 0 {
		return nil, err
	}
	for block, missing := range blocks {
		counts.exec(countGap, accountID, block, missing)
	}
	counts.exec(countDeleted, accountID, len(deleted))
	return deleted, tx.Send(ctx, &counts)
}

// ChangeLinks implements schema.LinkStore. It locks the account and then the links, in the order of their IDs.
func (s *Store) ChangeLinks(ctx context.Context, changes *schema.LinkChanges) error {
	var errs []error
	err := s.db.Update(ctx, func(tx Conn) error {
		if err := lockCall(ctx, tx, changes.Call); err != nil {
			return err
		}
		if err := get(ctx, tx, value(new(int64)), lockAccount, changes.AccountID); err != nil {
			return err
		}
		if err := checkCall(ctx, tx, changes.Call); err != nil {
			return err
		}
		outcomes, err := changeAll(ctx, tx, changes)
		if err != nil {
			return err
		}
		errs = make([]error, len(changes.IDs))
		for i, id := range changes.IDs {
			outcome, found := outcomes[id]
			if errs[i] = outcome; !found {
				errs[i] = wrap(errNoRow, "change link %d of account %d", id, changes.AccountID)
			}
		}
		if changes.Call == nil {
			return nil
		}
		answer, err := changes.Answer(errs)
		if err != nil {
			return err
		}
		return keepCall(ctx, tx, changes.Call, answer)
	})
	if err != nil {
		return wrap(err, "change %d links of account %d", len(changes.IDs), changes.AccountID)
	}
	changes.Errs = errs
	return nil
}

// changeAll edits or deletes links, and returns the outcomes for the links that it has found, by ID.
func changeAll(ctx context.Context, tx Conn, changes *schema.LinkChanges) (map[int64]error, error) {
	outcomes := map[int64]error{}
	if changes.Edit == nil {
		deleted, err := deleteAll(ctx, tx, changes.AccountID, changes.IDs, changes.At)
		for _, id := range deleted {
			outcomes[id] = nil
		}
		return outcomes, err
	}
	links, err := list(ctx, tx, linkFields, lockLinks, changes.AccountID, changes.IDs)
	if err != nil {
		return nil, err
	}
	var b Batch
	for i := range links {
		edit, err := changes.Edit(links[i])
		if outcomes[links[i].ID] = err; err == nil {
			b.execOne(updateLink, updateArgs(&links[i], edit, changes.At)...)
		}
	}
	return outcomes, tx.Send(ctx, &b)
}

// RestoreLink implements schema.LinkStore. It locks the account before the link, and the domains, so that DeleteDomain
// waits until the link is visible.
func (s *Store) RestoreLink(
	ctx context.Context, accountID int64, hash string, domainID *int64, deletedAfter, at time.Time,
) (link schema.Link, err error) {
	err = s.db.Update(ctx, func(tx Conn) error {
		if err := get(ctx, tx, value(new(int64)), lockAccount, accountID); err != nil {
			return err
		}
		if _, err := list(ctx, tx, value[int64], ownDomains, accountID); err != nil {
			return err
		}
		var id, ordinal int64
		err := write(ctx, tx, []any{&id, &ordinal}, restoreLink, accountID, hash, domainID, deletedAfter, at)
		if schema.ErrorCode(err) == schema.CodeNotFound {
			if err = get(ctx, tx, value(new(int)), linkRemade, accountID, hash, domainID); err == nil {
				return schema.Errorf(schema.CodeConflict, "the link was made anew")
			}
		}
		if err != nil {
			return err
		}
		var b Batch
		b.exec(countGap, accountID, ordinal/schema.OrdinalBlock, -1)
		b.exec(countDeleted, accountID, -1)
		b.get(linkFields(&link), linkByID, id)
		return tx.Send(ctx, &b)
	})
	return link, wrap(err, "restore link %q of account %d", hash, accountID)
}

// PurgeLinks implements schema.LinkStore.
func (s *Store) PurgeLinks(ctx context.Context, deletedBy time.Time, limit int) (int64, error) {
	purged, err := exec(ctx, s.db, purgeLinks, deletedBy, limit)
	return purged, wrap(err, "purge deleted links")
}

// SetTakenDown implements schema.LinkStore.
func (s *Store) SetTakenDown(ctx context.Context, domainID int64, hash string, takenDown bool) error {
	err := execOne(ctx, s.db, setTakenDown, domainID, hash, takenDown)
	return wrap(err, "set taken down of link %q on domain %d", hash, domainID)
}
