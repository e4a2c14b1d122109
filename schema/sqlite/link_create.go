package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"linkstream/schema"
	"linkstream/schema/groupcommit"
)

// creationLimits bound the links that are created together, and so for how long others wait to write.
var creationLimits = groupcommit.Limits{Batch: 256, Queue: 8192, Timeout: 10 * time.Second}

const (
	// createLink inserts nothing if there is no such account or domain.
	createLink = `
	INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
	SELECT ?1, ?2, ?3, ?4, ?5, link_count + 1, ?6 FROM accounts
	WHERE id = ?1 AND (?2 = 0 OR EXISTS (SELECT 1 FROM domains WHERE id = ?2))`
	// countLink follows createLink: a hash that is taken has spent no ordinal.
	countLink = `UPDATE accounts SET link_count = link_count + 1 WHERE id = ? RETURNING link_count`
)

// CreateLink implements schema.LinkStore. Links that are created at the same time share a transaction, of which the disk
// is synced once.
func (s *Store) CreateLink(ctx context.Context, link *schema.Link) error {
	made, err := s.creations.Submit(ctx, *link)
	if err != nil {
		return wrap(err, "create link %q on domain %d", link.Hash, link.DomainID)
	}
	link.ID, link.Ordinal = made.ID, made.Ordinal
	return nil
}

func (s *Store) createTogether(ctx context.Context, batch []*groupcommit.Call[schema.Link]) error {
	return s.db.update(ctx, func(tx *sql.Tx) error {
		create, count := tx.StmtContext(ctx, s.createLink), tx.StmtContext(ctx, s.countLink)
		for _, call := range batch {
			if call.Err = createWith(ctx, create, count, &call.Value); call.Err != nil && !refused(call.Err) {
				return call.Err
			}
		}
		return nil
	})
}

// createWith creates a link by statements of a transaction, or leaves no trace there.
func createWith(ctx context.Context, create, count *sql.Stmt, link *schema.Link) error {
	result, err := create.ExecContext(ctx,
		link.AccountID, link.DomainID, link.Hash, link.URL, link.Active, millis{&link.CreatedAt})
	if err := oneRow(result, err); err != nil {
		return err
	}
	if link.ID, err = result.LastInsertId(); err != nil {
		return err
	}
	return count.QueryRowContext(ctx, link.AccountID).Scan(&link.Ordinal)
}

// refused reports an outcome of one statement, after which the transaction is as it was before it.
func refused(err error) bool {
	code := codeOf(err)
	return errors.Is(err, sql.ErrNoRows) || code == schema.CodeConflict
}
