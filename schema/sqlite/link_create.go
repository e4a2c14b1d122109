package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"linkstream/schema"
	"linkstream/schema/groupcommit"
)

// creationLimits bound the links that one transaction creates, for which other writes wait, and the calls that wait.
var creationLimits = groupcommit.Limits{Batch: 256, Queue: 8192, Timeout: 10 * time.Second}

const (
	// createLink inserts nothing if the account or the domain does not exist.
	createLink = `
	INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at, title, tags, expires_at, expired_url,
		forward_query, taken_down, remade, extension, password_hash)
	SELECT ?1, ?2, ?3, ?4, ?5, link_count + 1, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15 FROM accounts
	WHERE id = ?1 AND (?2 = 0 OR EXISTS (SELECT 1 FROM domains WHERE id = ?2))`
	// countLink is executed after createLink, so that a taken hash spends no ordinal.
	countLink = `UPDATE accounts SET link_count = link_count + 1 WHERE id = ? RETURNING link_count`
	// clearDeleted removes the row of a deleted link of the account, so that its hash can be used again.
	clearDeleted = `DELETE FROM links WHERE domain_id = ? AND hash = ? AND account_id = ? AND ordinal < 0 RETURNING taken_down`
)

// CreateLink implements schema.LinkStore. Links that are created at the same time share a transaction and its sync of the
// disk.
func (s *Store) CreateLink(ctx context.Context, link *schema.Link) error {
	created, err := s.creations.Submit(ctx, *link)
	if err != nil {
		return wrap(err, "create link %q on domain %d", link.Hash, link.DomainID)
	}
	link.ID, link.Ordinal, link.UpdatedAt = created.ID, created.Ordinal, link.CreatedAt
	return nil
}

func (s *Store) createBatch(ctx context.Context, batch []*groupcommit.Call[schema.Link]) error {
	return s.db.update(ctx, func(tx *sql.Tx) error {
		create, count := tx.StmtContext(ctx, s.createLink), tx.StmtContext(ctx, s.countLink)
		for _, call := range batch {
			if call.Err = createOne(ctx, tx, create, count, &call.Value); call.Err != nil && !rejected(call.Err) {
				return call.Err
			}
		}
		return nil
	})
}

// createOne creates a link in the transaction of the two statements.
func createOne(ctx context.Context, tx *sql.Tx, create, count *sql.Stmt, link *schema.Link) error {
	takenDown, remade := false, false
	insert := func() (sql.Result, error) {
		return create.ExecContext(ctx, link.AccountID, link.DomainID, link.Hash, link.URL, link.Active,
			unixMillis{&link.CreatedAt}, link.Title, schema.TagsColumn{List: &link.Tags}, unixMillis{&link.ExpiresAt}, link.ExpiredURL,
			link.ForwardQuery, takenDown, remade, link.Extension.Text(), link.PasswordHash)
	}
	result, err := insert()
	if err != nil && codeOf(err) == schema.CodeConflict {
		row := tx.QueryRowContext(ctx, clearDeleted, link.DomainID, link.Hash, link.AccountID)
		if row.Scan(&takenDown) != nil {
			return err
		}
		remade = true
		result, err = insert()
	}
	if err := oneRow(result, err); err != nil {
		return err
	}
	if link.ID, err = result.LastInsertId(); err != nil {
		return err
	}
	return count.QueryRowContext(ctx, link.AccountID).Scan(&link.Ordinal)
}

// rejected reports whether err is of one link: then its statement has changed nothing, and the transaction goes on.
func rejected(err error) bool {
	code := codeOf(err)
	return errors.Is(err, sql.ErrNoRows) || code == schema.CodeConflict
}
