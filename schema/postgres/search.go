package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

const (
	// With collation C, lower changes ASCII letters only. One pass over the account's links finds the page and the total.
	searchLinks = `
	WITH found AS MATERIALIZED (
		SELECT ordinal FROM links
		WHERE account_id = $1 AND ordinal > 0 AND (strpos(lower(hash), lower($4 COLLATE "C")) > 0
			OR strpos(lower(url COLLATE "C"), lower($4 COLLATE "C")) > 0)),
	page AS (SELECT ordinal FROM found ORDER BY ordinal DESC OFFSET $2 LIMIT $3)
	SELECT t.total, ` + pageColumns + `
	FROM (SELECT count(*) AS total FROM found) t
	LEFT JOIN page p ON true
	LEFT JOIN links l ON l.account_id = $1 AND l.ordinal = p.ordinal
	LEFT JOIN domains d ON d.id = l.domain_id
	ORDER BY l.ordinal DESC`
	linksByID = selectLink + `WHERE l.id = ANY ($2::bigint[]) AND l.account_id = $1 AND l.ordinal > 0`
)

// SearchLinks implements schema.LinkStore.
func (s *Store) SearchLinks(
	ctx context.Context, accountID int64, query string, page int64,
) (links []schema.Link, total int64, err error) {
	rows, err := s.pool.Query(ctx, searchLinks, accountID, offset(page), schema.PageSize, query)
	if err == nil {
		links, err = scanPage(rows, &total)
	}
	err = wrap(err, "search page %d of account %d's links", page, accountID)
	if schema.ErrorCode(err) == schema.CodeNotFound { // no link can have the text
		return nil, 0, nil
	}
	return links, total, err
}

// LinksByID implements schema.LinkStore.
func (s *Store) LinksByID(ctx context.Context, accountID int64, ids []int64) ([]schema.Link, error) {
	rows, err := s.pool.Query(ctx, linksByID, accountID, ids)
	if err != nil {
		return nil, wrap(err, "read %d links of account %d", len(ids), accountID)
	}
	links, err := pgx.CollectRows(rows, scanLink)
	return links, wrap(err, "read %d links of account %d", len(ids), accountID)
}
