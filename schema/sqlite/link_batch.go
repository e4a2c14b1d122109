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
		chosen := map[schema.LinkKey]bool{} // which are not drawn for links before
		for i := range links {
			chosen[links[i].Key()] = true
		}
		create, count := tx.StmtContext(ctx, s.createLink), tx.StmtContext(ctx, s.countLink)
		for i := range links {
			links[i].AccountID = batch.AccountID
			err := createDrawn(&links[i], chosen, batch.NewHash, func() error { return createOne(ctx, tx, create, count, &links[i]) })
			if err != nil && !rejected(err) {
				return err
			}
			errs[i] = wrap(err, "create link %q on domain %d", links[i].Hash, links[i].DomainID)
		}
		return nil
	})
	if err != nil {
		return wrap(err, "create %d links of account %d", len(links), batch.AccountID)
	}
	for i := range links {
		links[i].UpdatedAt = links[i].CreatedAt
	}
	batch.Links, batch.Errs = links, errs
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
