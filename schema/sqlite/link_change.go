package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"linkstream/schema"
)

const (
	ownedByID = selectLink + `WHERE l.id = ? AND l.account_id = ? AND l.ordinal > 0`
	// The unary + keeps SQLite from reading all links of the account instead of those with the hashes.
	ownedByHash = selectLink + `
	WHERE l.account_id = ? AND l.hash IN (SELECT value FROM json_each(?)) AND +l.ordinal > 0 ORDER BY l.domain_id <> 0, l.ordinal`
	restoreLink = `
	UPDATE links SET ordinal = -ordinal, remade = 0, updated_at = ?5 WHERE id = (
		SELECT l.id FROM links l LEFT JOIN domains d ON d.id = l.domain_id
		WHERE l.account_id = ?1 AND l.hash = ?2 AND (?3 IS NULL OR l.domain_id = ?3) AND +l.ordinal < 0 AND l.url <> ''
			AND l.updated_at > ?4 AND (l.domain_id = 0 OR d.id IS NOT NULL)
		ORDER BY l.domain_id <> 0, l.ordinal DESC LIMIT 1)
	RETURNING id, ordinal`
	linkRemade = `
	SELECT 1 FROM links WHERE account_id = ?1 AND hash = ?2 AND (?3 IS NULL OR domain_id = ?3) AND +ordinal > 0 AND remade LIMIT 1`
	purgeLinks = `
	UPDATE links SET url = '', title = '', tags = '', active = 0, expires_at = NULL, expired_url = '', forward_query = 0, extension = '',
		password_hash = ''
	WHERE id IN (SELECT id FROM links WHERE ordinal < 0 AND url <> '' AND updated_at <= ? LIMIT ?)`
)

// OwnedLinks implements schema.LinkStore.
func (s *Store) OwnedLinks(ctx context.Context, accountID int64, hashes []string) ([]schema.Link, error) {
	wanted, err := json.Marshal(hashes)
	if err != nil {
		return nil, err
	}
	links, err := scanLinks(s.db.query(ctx, ownedByHash, accountID, string(wanted)))
	return links, wrap(err, "read links with %d hashes of account %d", len(hashes), accountID)
}

// ChangeLinks implements schema.LinkStore.
func (s *Store) ChangeLinks(ctx context.Context, changes *schema.LinkChanges) error {
	errs := make([]error, len(changes.IDs))
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		if err := checkCall(ctx, tx, changes.Call); err != nil {
			return err
		}
		for i, id := range changes.IDs {
			outcome, err := changeOne(ctx, tx, changes, id)
			if errors.Is(err, sql.ErrNoRows) {
				outcome, err = wrap(err, "change link %d of account %d", id, changes.AccountID), nil
			}
			if err != nil {
				return err
			}
			errs[i] = outcome
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
		return wrap(err, "change %d links of account %d", len(errs), changes.AccountID)
	}
	changes.Errs = errs
	return nil
}

// changeOne edits or deletes a link. outcome is the error of changes.Edit.
func changeOne(ctx context.Context, tx *sql.Tx, changes *schema.LinkChanges, id int64) (outcome, err error) {
	if changes.Edit == nil {
		return nil, deleteOne(ctx, tx, id, changes.AccountID, changes.At)
	}
	link, err := scanLink(tx.QueryRowContext(ctx, ownedByID, id, changes.AccountID))
	if err != nil {
		return nil, err
	}
	edit, err := changes.Edit(link)
	if err != nil {
		return err, nil
	}
	return nil, updateOne(ctx, tx, &link, edit, changes.At)
}

// RestoreLink implements schema.LinkStore.
func (s *Store) RestoreLink(
	ctx context.Context, accountID int64, hash string, domainID *int64, deletedAfter, at time.Time,
) (link schema.Link, err error) {
	err = s.db.update(ctx, func(tx *sql.Tx) error {
		var id, ordinal int64
		row := tx.QueryRowContext(ctx, restoreLink, accountID, hash, domainID, unixMillis{&deletedAfter}, unixMillis{&at})
		err := row.Scan(&id, &ordinal)
		if errors.Is(err, sql.ErrNoRows) {
			if err = tx.QueryRowContext(ctx, linkRemade, accountID, hash, domainID).Scan(new(int)); err == nil {
				return schema.Errorf(schema.CodeConflict, "the link was made anew")
			}
		}
		if err != nil {
			return err
		}
		if err := countDeletion(ctx, tx, accountID, ordinal, -1); err != nil {
			return err
		}
		link, err = scanLink(tx.QueryRowContext(ctx, linkByID, id))
		return err
	})
	return link, wrap(err, "restore link %q of account %d", hash, accountID)
}

// PurgeLinks implements schema.LinkStore.
func (s *Store) PurgeLinks(ctx context.Context, deletedBy time.Time, limit int) (purged int64, err error) {
	result, err := s.db.write.ExecContext(ctx, purgeLinks, unixMillis{&deletedBy}, limit)
	if err == nil {
		purged, err = result.RowsAffected()
	}
	return purged, wrap(err, "purge deleted links")
}
