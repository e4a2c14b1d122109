package linkstore

import (
	"cmp"
	"context"
	"time"

	"linkstream/schema"
)

const (
	// updateLink changes no row if the link has not the version $12, or the behaviour $14.
	updateLink    = setLink + ofVersion + `> 0`
	updateDeleted = setLink + ofVersion + `< 0 AND url <> '' AND updated_at > $19`
	renameLink    = setLink + `, hash = $19, former_hashes = $20` + ofVersion + `> 0`
	setLink       = `
	UPDATE links SET url = coalesce($2, url), title = coalesce($3, title), tags = coalesce($4, tags),
		active = coalesce($5, active), expires_at = CASE WHEN $6 THEN $7 ELSE expires_at END,
		expired_url = coalesce($8, expired_url), forward_query = coalesce($9, forward_query),
		extension = coalesce($13, extension), password_hash = coalesce($15, password_hash),
		folded_url = CASE WHEN CAST($2 AS text) IS NULL THEN folded_url ELSE $16 END,
		folded_title = CASE WHEN CAST($3 AS text) IS NULL THEN folded_title ELSE $17 END, updated_at = $10,
		external_id = CASE WHEN CAST($18 AS text) IS NULL THEN external_id ELSE nullif($18, '') END,
		version = version + 1`
	ofVersion = `
	WHERE id = $1 AND (CAST($13 AS text) IS NULL OR extension = $14) AND (NOT $11 OR version = $12) AND ordinal `
	linkByID  = selectLink + `WHERE l.id = $1 AND l.ordinal > 0`
	lockLinks = selectLink + `
	WHERE l.id {in: $2} AND +l.account_id = $1 AND +l.ordinal > 0 ORDER BY l.id{for update of l}`
	// countGaps and countDeleted count the links that deleteLinks is about to delete. The lock on the account keeps other
	// calls from deleting or restoring them in between.
	countGaps = `
	INSERT INTO link_gaps (account_id, block, missing)
	SELECT CAST($1 AS bigint), ordinal / CAST($3 AS bigint), count(*) FROM links
	WHERE id {in: $2} AND +account_id = $1 AND +ordinal > 0 GROUP BY 2` + addGap
	addGap       = ` ON CONFLICT (account_id, block) DO UPDATE SET missing = link_gaps.missing + excluded.missing`
	countDeleted = `
	UPDATE accounts SET deleted_links = deleted_links
		+ (SELECT count(*) FROM links WHERE id {in: $2} AND +account_id = $1 AND +ordinal > 0) WHERE id = $1`
	deleteLinks = `
	UPDATE links SET ordinal = -ordinal, updated_at = $3, version = version + 1
	WHERE id {in: $2} AND +account_id = $1 AND +ordinal > 0
	RETURNING id`
	// holdVersion locks a link that has the version, and otherwise changes no row.
	holdVersion = `
	UPDATE links SET version = version WHERE id = $2 AND +account_id = $1 AND +ordinal > 0 AND version = $3`

	// linkToRestore finds the link that was just restored, or otherwise the link to restore, or the link that replaced a
	// deleted one.
	linkToRestore = `
	SELECT l.id, l.remade AND l.ordinal > 0, ` + justRestored + ` FROM links n CROSS JOIN links l
	WHERE n.` + ofOwner + ` AND n.hash = $2 AND n.domain_id {among}` + domainsOfOwner + `{end} AND ` + byName + `
		AND (CAST($3 AS bigint) IS NULL OR l.domain_id = $3)
		AND CASE WHEN l.ordinal > 0 THEN l.remade OR ` + justRestored + ` ELSE l.url <> '' AND l.updated_at > $4 END
	ORDER BY NOT ` + justRestored + `, l.ordinal > 0, l.domain_id <> 0, l.ordinal DESC LIMIT 1`
	justRestored = `coalesce(l.ordinal > 0 AND l.restored_at > $5, false)`
	ownDomains   = `SELECT id FROM domains WHERE account_id = $1 ORDER BY id{for key share}`
	// restorable holds for links with the IDs $2 until the end of the transaction if it holds once account, domains and
	// links are locked.
	restorable = `id {in: $2} AND +account_id = $1 AND +ordinal < 0 AND url <> '' AND updated_at > $3
		AND +domain_id {among}` + domainsOfOwner + `{end}`
	lockRestored  = `SELECT id FROM links WHERE ` + restorable + ` ORDER BY id{for update}`
	countRestored = `
	UPDATE accounts SET deleted_links = deleted_links - (SELECT count(*) FROM links WHERE ` + restorable + `)
	WHERE id = $1`
	fillGaps = `
	INSERT INTO link_gaps (account_id, block, missing)
	SELECT CAST($1 AS bigint), -ordinal / CAST($4 AS bigint), -count(*) FROM links
	WHERE ` + restorable + ` GROUP BY 2` + addGap
	restoreLinks = `
	UPDATE links SET ordinal = -ordinal, remade = false, updated_at = $4, restored_at = $4, version = version + 1
	WHERE ` + restorable
	purgeLinks = `
	UPDATE links SET url = '', title = '', tags = '', active = false, expires_at = NULL, expired_url = '',
		forward_query = false, extension = '', password_hash = '', folded_url = NULL, folded_title = NULL,
		external_id = NULL
	WHERE id {among}
		SELECT id FROM links WHERE ordinal < 0 AND url <> '' AND updated_at <= $1 LIMIT $2{for update skip locked}{end}`
)

// errChanged is the outcome of a call for an earlier version of a link.
var errChanged error = schema.Errorf(schema.CodeConflict, "it has changed")

// UpdateLink implements schema.LinkStore.
func (s *Store) UpdateLink(ctx context.Context, link *schema.Link, edit schema.LinkEdit, at time.Time) error {
	var changed int64
	var updated schema.Link
	var b Batch
	if edit.ExternalID != nil {
		b.get(value(new(int64)), lockAccount, link.AccountID)
		b.freeExternal(link.AccountID, []string{*edit.ExternalID}, at)
	}
	if edit.Names != nil {
		b.rename(link, edit, at)
	} else {
		b.count(&changed, updateLink, updateArgs(link, edit, at)...)
	}
	b.get(linkFields(&updated), linkByID, link.ID)
	err := s.sendInTurn(ctx, link.AccountID, &b)
	switch {
	case err == nil && edit.Names == nil && changed == 0:
		err = errChanged
	case schema.ErrorCode(err) == schema.CodeConflict:
		err = s.whatIsTaken(ctx, *link, edit)
	case edit.Names != nil:
		err = s.orChanged(ctx, *link, err)
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
		edit.ExpiresAt, edit.ExpiredURL, edit.ForwardQuery, at, edit.Unchanged, link.Version, edit.BehaviourText(),
		link.Behaviour.Text(), edit.PasswordHash, folded(edit.URL, schema.FoldURL), folded(edit.Title, schema.Fold),
		edit.ExternalID}
}

// DeleteLink implements schema.LinkStore.
func (s *Store) DeleteLink(ctx context.Context, link schema.Link, at time.Time) error {
	var deleted []int64
	var b Batch
	b.get(value(new(int64)), lockAccount, link.AccountID)
	b.deleteLinks(&deleted, link.AccountID, []int64{link.ID}, at)
	err := s.sendInTurn(ctx, link.AccountID, &b)
	return wrap(atLeastOne(int64(len(deleted)), err), "delete link %d of account %d", link.ID, link.AccountID)
}

// DeleteUnchanged implements schema.LinkStore.
func (s *Store) DeleteUnchanged(ctx context.Context, link schema.Link, at time.Time) error {
	var b Batch
	b.get(value(new(int64)), lockAccount, link.AccountID)
	b.execOne(holdVersion, link.AccountID, link.ID, link.Version)
	b.deleteLinks(new([]int64), link.AccountID, []int64{link.ID}, at)
	err := s.sendInTurn(ctx, link.AccountID, &b)
	err = s.orChanged(ctx, link, err)
	return wrap(err, "delete version %d of link %d of account %d", link.Version, link.ID, link.AccountID)
}

// orChanged returns errChanged for CodeNotFound of a call for a link that is still there.
func (s *Store) orChanged(ctx context.Context, link schema.Link, err error) error {
	if schema.ErrorCode(err) == schema.CodeNotFound {
		if links, unread := s.LinksByID(ctx, link.AccountID, []int64{link.ID}); unread != nil || len(links) > 0 {
			return cmp.Or(unread, errChanged)
		}
	}
	return err
}

// deleteLinks adds the statements that delete links of an account, which the transaction has locked, as statements that
// create links do. deleted becomes the IDs of the links that are found.
func (b *Batch) deleteLinks(deleted *[]int64, accountID int64, ids []int64, at time.Time) {
	b.exec(countGaps, accountID, ids, schema.OrdinalBlock)
	b.exec(countDeleted, accountID, ids)
	b.rows(func(rows Rows) (err error) {
		*deleted, err = collect(rows, value[int64])
		return err
	}, deleteLinks, accountID, ids, at)
}

// ChangeLinks implements schema.LinkStore. It locks the account and then the links, in the order of their IDs.
func (s *Store) ChangeLinks(ctx context.Context, changes *schema.LinkChanges) error {
	var errs []error
	err := s.updateInTurn(ctx, changes.AccountID, func(tx Conn) error {
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
				errs[i] = wrap(ErrNoRow, "change link %d of account %d", id, changes.AccountID)
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
		var deleted []int64
		var b Batch
		b.deleteLinks(&deleted, changes.AccountID, changes.IDs, changes.At)
		err := tx.Send(ctx, &b)
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

// RestoreLink implements schema.LinkStore. If another call has restored or purged the link that it has found, it looks
// again.
func (s *Store) RestoreLink(
	ctx context.Context, accountID int64, hash string, domainID *int64, deletedAfter, at time.Time,
) (link schema.Link, err error) {
	var id int64
	for restored, remade, again := false, false, false; !restored && err == nil; {
		err = get(ctx, s.db, []any{&id, &remade, &again}, linkToRestore, accountID, hash, domainID, deletedAfter,
			at.Add(-schema.RestoreAgain))
		switch {
		case err != nil:
		case again:
			restored, err = true, get(ctx, s.db, linkFields(&link), linkByID, id)
		case remade:
			err = schema.Errorf(schema.CodeConflict, "the link was made anew")
		default:
			link, restored, err = s.restore(ctx, accountID, id, deletedAfter, at)
		}
	}
	return link, wrap(err, "restore link %q of account %d", hash, accountID)
}

// restore restores a link, unless that is impossible by now.
func (s *Store) restore(
	ctx context.Context, accountID, id int64, deletedAfter, at time.Time,
) (link schema.Link, restored bool, err error) {
	var changed int64
	var found []schema.Link
	var b Batch
	b.restoreLinks(&changed, accountID, []int64{id}, deletedAfter, at)
	b.rows(func(rows Rows) (err error) {
		found, err = collect(rows, linkFields)
		return err
	}, linkByID, id)
	if err := s.sendInTurn(ctx, accountID, &b); err != nil || changed == 0 {
		return schema.Link{}, false, err
	}
	return found[0], true, nil
}

// restoreLinks adds the statements that restore links of an account, and sets restored to their number. They lock the
// account before the links, and the domains, so that DeleteDomain waits until the links are visible.
func (b *Batch) restoreLinks(restored *int64, accountID int64, ids []int64, deletedAfter, at time.Time) {
	ignored := func(Rows) error { return nil }
	b.get(value(new(int64)), lockAccount, accountID)
	b.rows(ignored, ownDomains, accountID)
	b.rows(ignored, lockRestored, accountID, ids, deletedAfter)
	b.exec(fillGaps, accountID, ids, deletedAfter, schema.OrdinalBlock)
	b.exec(countRestored, accountID, ids, deletedAfter)
	b.count(restored, restoreLinks, accountID, ids, deletedAfter, at)
}

// RestoreLinks implements schema.LinkStore.
func (s *Store) RestoreLinks(
	ctx context.Context, accountID int64, ids []int64, deletedAfter, at time.Time,
) (restored int64, err error) {
	var b Batch
	b.restoreLinks(&restored, accountID, ids, deletedAfter, at)
	return restored, wrap(s.sendInTurn(ctx, accountID, &b), "restore %d links of account %d", len(ids), accountID)
}

// PurgeLinks implements schema.LinkStore.
func (s *Store) PurgeLinks(ctx context.Context, deletedBy time.Time, limit int) (int64, error) {
	purged, err := exec(ctx, s.db, purgeLinks, deletedBy, limit)
	return purged, wrap(err, "purge deleted links")
}

// SetTakenDown implements schema.LinkStore.
func (s *Store) SetTakenDown(ctx context.Context, domainID int64, hash string, takenDown bool) error {
	var b Batch
	b.execOne(setTakenDown, domainID, hash, takenDown)
	b.exec(setNamesTakenDown, domainID, hash, takenDown)
	err := s.db.Send(ctx, &b)
	return wrap(err, "set taken down of link %q on domain %d", hash, domainID)
}
