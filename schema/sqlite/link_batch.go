package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"linkstream/schema"
)

const accountByID = `SELECT 1 FROM accounts WHERE id = ?`

// CreateLinks implements schema.LinkStore.
func (s *Store) CreateLinks(ctx context.Context, batch *schema.LinkBatch) error {
	links, errs := slices.Clone(batch.Links), make([]error, len(batch.Links))
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, accountByID, batch.AccountID).Scan(new(int)); err != nil {
			return err
		}
		if err := checkCall(ctx, tx, batch.Call); err != nil {
			return err
		}
		if err := s.createAll(ctx, tx, batch, links, errs); err != nil || batch.Call == nil {
			return err
		}
		answer, err := batch.Answer(links, errs)
		if err != nil {
			return err
		}
		return keepCall(ctx, tx, batch.Call, answer)
	})
	if err != nil {
		return wrap(err, "create %d links of account %d", len(links), batch.AccountID)
	}
	batch.Links, batch.Errs = links, errs
	return nil
}

// createAll creates links in a transaction, and sets errs to what became of each.
func (s *Store) createAll(ctx context.Context, tx *sql.Tx, batch *schema.LinkBatch, links []schema.Link, errs []error) error {
	chosen := map[schema.LinkKey]bool{} // which are not drawn for links before
	for i := range links {
		chosen[links[i].Key()] = true
	}
	create, count := tx.StmtContext(ctx, s.createLink), tx.StmtContext(ctx, s.countLink)
	for i := range links {
		link := &links[i]
		link.AccountID, link.UpdatedAt = batch.AccountID, link.CreatedAt
		err := createDrawn(link, chosen, batch.NewHash, func() error { return createOne(ctx, tx, create, count, link) })
		if err != nil && !rejected(err) {
			return err
		}
		errs[i] = wrap(err, "create link %q on domain %d", link.Hash, link.DomainID)
	}
	return nil
}

// createDrawn calls create. If the link has no hash, it draws hashes until one is free.
func createDrawn(link *schema.Link, chosen map[schema.LinkKey]bool, newHash func() string, create func() error) error {
	if link.Hash != "" {
		return create()
	}
	for range schema.MaxDraws {
		if link.Hash = newHash(); chosen[link.Key()] {
			continue
		}
		if err := create(); codeOf(err) != schema.CodeConflict {
			return err
		}
	}
	return schema.ErrNoFreeHash
}
