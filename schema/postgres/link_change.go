package postgres

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

const (
	// The links of an account are on its own domains and on the default domain, so the index of hashes finds them.
	ownedByHash = selectLink + `
	WHERE l.account_id = $1 AND l.hash = ANY ($2::text[]) AND l.ordinal > 0
		AND l.domain_id = ANY (ARRAY(SELECT id FROM domains WHERE account_id = $1) || 0::bigint)
	ORDER BY l.domain_id <> 0, l.ordinal`
	lockLinks = selectLink + `
	WHERE l.id = ANY ($2::bigint[]) AND l.account_id = $1 AND l.ordinal > 0 ORDER BY l.id FOR NO KEY UPDATE OF l`
	// restoreLink locks the account before the link, and the domain, so that DeleteDomain waits until the link is visible.
	restoreLink = `
	WITH owner AS MATERIALIZED (SELECT id FROM accounts WHERE id = $1 FOR NO KEY UPDATE),
		domain AS MATERIALIZED (SELECT id FROM domains WHERE account_id = $1 FOR KEY SHARE),
		found AS (
			SELECT l.id FROM links l, owner
			WHERE l.account_id = owner.id AND l.hash = $2 AND l.ordinal < 0 AND l.url <> '' AND l.updated_at > $4
				AND l.domain_id IN (SELECT id FROM domain UNION ALL SELECT 0) AND ($3::bigint IS NULL OR l.domain_id = $3)
			ORDER BY l.domain_id <> 0, l.ordinal DESC LIMIT 1),
		l AS (
			UPDATE links SET ordinal = -ordinal, remade = false, updated_at = $5 WHERE id = (SELECT id FROM found) AND ordinal < 0 AND url <> '' RETURNING *),
		gap AS (
			UPDATE link_gaps g SET missing = missing - 1 FROM l WHERE g.account_id = $1 AND g.block = l.ordinal / $6),
		counted AS (UPDATE accounts SET deleted_links = deleted_links - 1 WHERE id = $1 AND EXISTS (SELECT FROM l))
	SELECT ` + linkColumns + ` FROM l LEFT JOIN domains d ON d.id = l.domain_id`
	linkRemade = `
	SELECT 1 FROM links WHERE account_id = $1 AND hash = $2 AND ordinal > 0 AND remade AND domain_id = ANY (CASE WHEN $3::bigint IS NULL
		THEN ARRAY(SELECT id FROM domains WHERE account_id = $1) || 0::bigint ELSE ARRAY[$3] END) LIMIT 1`
	purgeLinks = `
	UPDATE links SET url = '', title = '', tags = '', active = false, expires_at = NULL, expired_url = '', forward_query = false,
		extension = '', password_hash = ''
	WHERE id = ANY (ARRAY(
		SELECT id FROM links WHERE ordinal < 0 AND url <> '' AND updated_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED))`
)

// OwnedLinks implements schema.LinkStore.
func (s *Store) OwnedLinks(ctx context.Context, accountID int64, hashes []string) ([]schema.Link, error) {
	rows, err := s.pool.Query(ctx, ownedByHash, accountID, hashes)
	if err != nil {
		return nil, wrap(err, "read links with %d hashes of account %d", len(hashes), accountID)
	}
	links, err := pgx.CollectRows(rows, scanLink)
	return links, wrap(err, "read links with %d hashes of account %d", len(hashes), accountID)
}

// ChangeLinks implements schema.LinkStore. It locks the account and then the links, in the order of their IDs.
func (s *Store) ChangeLinks(ctx context.Context, changes *schema.LinkChanges) error {
	var errs []error
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := lockCall(ctx, tx, changes.Call); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, lockOwner, changes.AccountID).Scan(new(int64)); err != nil {
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
				errs[i] = wrap(pgx.ErrNoRows, "change link %d of account %d", id, changes.AccountID)
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

// changeAll edits or deletes links, and returns what became of those that it has found, by ID.
func changeAll(ctx context.Context, tx pgx.Tx, changes *schema.LinkChanges) (map[int64]error, error) {
	outcomes := map[int64]error{}
	if changes.Edit == nil {
		rows, err := tx.Query(ctx, deleteLinks, changes.AccountID, changes.IDs, changes.At, schema.OrdinalBlock)
		if err != nil {
			return nil, err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		for _, id := range ids {
			outcomes[id] = nil
		}
		return outcomes, err
	}
	rows, err := tx.Query(ctx, lockLinks, changes.AccountID, changes.IDs)
	if err != nil {
		return nil, err
	}
	links, err := pgx.CollectRows(rows, scanLink)
	if err != nil {
		return nil, err
	}
	var queries pgx.Batch
	for i := range links {
		edit, err := changes.Edit(links[i])
		if outcomes[links[i].ID] = err; err == nil {
			queries.Queue(updateLink, updateArgs(&links[i], edit, changes.At)...)
		}
	}
	results := tx.SendBatch(ctx, &queries)
	defer results.Close()
	for range queries.Len() {
		if tag, err := results.Exec(); err != nil || tag.RowsAffected() != 1 {
			return nil, cmp.Or[error](err, schema.Errorf(schema.CodeInternal, "a locked link has changed"))
		}
	}
	return outcomes, results.Close()
}

// RestoreLink implements schema.LinkStore.
func (s *Store) RestoreLink(
	ctx context.Context, accountID int64, hash string, domainID *int64, deletedAfter, at time.Time,
) (schema.Link, error) {
	link, err := s.oneLink(ctx, restoreLink, accountID, hash, domainID, deletedAfter, at, schema.OrdinalBlock)
	if errors.Is(err, pgx.ErrNoRows) {
		if err = s.pool.QueryRow(ctx, linkRemade, accountID, hash, domainID).Scan(new(int)); err == nil {
			err = schema.Errorf(schema.CodeConflict, "the link was made anew")
		}
	}
	return link, wrap(err, "restore link %q of account %d", hash, accountID)
}

// PurgeLinks implements schema.LinkStore.
func (s *Store) PurgeLinks(ctx context.Context, deletedBy time.Time, limit int) (int64, error) {
	tag, err := s.pool.Exec(ctx, purgeLinks, deletedBy, limit)
	return tag.RowsAffected(), wrap(err, "purge deleted links")
}
