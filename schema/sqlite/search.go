package sqlite

import (
	"context"
	"encoding/json"

	"linkstream/schema"
)

const (
	// lower changes ASCII letters only.
	linkMatches = `WHERE l.account_id = ?1 AND l.ordinal > 0 AND (instr(lower(l.hash), lower(?2)) > 0 OR instr(lower(l.url), lower(?2)) > 0)`
	countFound  = `SELECT count(*) FROM links l ` + linkMatches
	searchLinks = selectLink + linkMatches + ` ORDER BY l.ordinal DESC LIMIT ?3 OFFSET ?4`
	// The unary + keeps SQLite from reading all links of the account instead of those few.
	linksByID = selectLink + `WHERE l.id IN (SELECT value FROM json_each(?)) AND +l.account_id = ? AND +l.ordinal > 0`
)

// SearchLinks implements schema.LinkStore.
func (s *Store) SearchLinks(
	ctx context.Context, accountID int64, query string, page int64,
) (links []schema.Link, total int64, err error) {
	err = s.db.view(ctx, func(tx *snapshot) error {
		err := tx.queryRow(ctx, countFound, accountID, query).Scan(&total)
		if err != nil {
			return err
		}
		if page-1 > total/schema.PageSize {
			return nil // the offset of a page far beyond the last would overflow
		}
		links, err = scanLinks(tx.query(ctx, searchLinks, accountID, query, schema.PageSize,
			(page-1)*schema.PageSize))
		return err
	})
	if err != nil {
		return nil, 0, wrap(err, "search page %d of account %d's links", page, accountID)
	}
	return links, total, nil
}

// LinksByID implements schema.LinkStore.
func (s *Store) LinksByID(ctx context.Context, accountID int64, ids []int64) ([]schema.Link, error) {
	wanted, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	links, err := scanLinks(s.db.query(ctx, linksByID, string(wanted), accountID))
	return links, wrap(err, "read %d links of account %d", len(ids), accountID)
}
