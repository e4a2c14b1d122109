package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

const (
	selectLink = `
	SELECT l.id, l.account_id, l.domain_id, coalesce(d.host, ''), l.hash, l.url, l.active, l.ordinal, l.created_at,
		` + stopOfLink + `
	FROM links l LEFT JOIN domains d ON d.id = l.domain_id `
	linkByHash  = selectLink + `WHERE l.domain_id = $1 AND l.hash = $2`
	linksByHash = selectLink + `
	JOIN unnest($1::bigint[], $2::text[]) k (domain_id, hash) ON l.domain_id = k.domain_id AND l.hash = k.hash`
	ownedLink = selectLink + `
	WHERE l.account_id = $1 AND l.hash = $2 AND ($3::bigint IS NULL OR l.domain_id = $3)
	ORDER BY l.domain_id <> 0, l.ordinal LIMIT 1`
	// A page is a range of ordinals, which the index finds directly. One statement reads one snapshot.
	linkPage = `
	SELECT a.link_count, ` + pageColumns + `
	FROM accounts a
	LEFT JOIN links l ON l.account_id = a.id
		AND l.ordinal > a.link_count - $2::bigint - $3::bigint AND l.ordinal <= a.link_count - $2::bigint
	LEFT JOIN domains d ON d.id = l.domain_id
	WHERE a.id = $1 ORDER BY l.ordinal DESC`
	// An empty page is one row without a link, so every column has a value for that.
	pageColumns = `coalesce(l.id, 0), coalesce(l.account_id, 0), coalesce(l.domain_id, 0), coalesce(d.host, ''),
		coalesce(l.hash, ''), coalesce(l.url, ''), coalesce(l.active, false), coalesce(l.ordinal, 0),
		coalesce(l.created_at, ` + zeroTime + `), ` + stopOfLink
	// stopOfLink is the schema.Stop of link l on domain d.
	stopOfLink = `CASE WHEN l.taken_down THEN 'taken_down'
		WHEN (SELECT suspended FROM accounts WHERE id = l.account_id) THEN 'suspended'
		WHEN l.domain_id <> 0 AND d.verified_at IS NULL THEN 'host_lost' ELSE '' END`
)

func scanLink(row pgx.Row) (link schema.Link, err error) {
	err = row.Scan(&link.ID, &link.AccountID, &link.DomainID, &link.Host, &link.Hash, &link.URL, &link.Active,
		&link.Ordinal, &link.CreatedAt, &link.Stopped)
	return link, err
}

// Link implements schema.LinkStore.
func (s *Store) Link(ctx context.Context, domainID int64, hash string) (schema.Link, error) {
	link, err := scanLink(s.pool.QueryRow(ctx, linkByHash, domainID, hash))
	return link, wrap(err, "read link %q on domain %d", hash, domainID)
}

// LinksByHash implements schema.LinkStore.
func (s *Store) LinksByHash(ctx context.Context, keys []schema.LinkKey) ([]schema.Link, error) {
	domains, hashes := make([]int64, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		domains[i], hashes[i] = key.DomainID, key.Hash
	}
	rows, err := s.pool.Query(ctx, linksByHash, domains, hashes)
	if err != nil {
		return nil, wrap(err, "read %d links", len(keys))
	}
	links, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (schema.Link, error) { return scanLink(row) })
	return links, wrap(err, "read %d links", len(keys))
}

// OwnedLink implements schema.LinkStore.
func (s *Store) OwnedLink(ctx context.Context, accountID int64, hash string, domainID *int64) (schema.Link, error) {
	link, err := scanLink(s.pool.QueryRow(ctx, ownedLink, accountID, hash, domainID))
	return link, wrap(err, "read link %q of account %d", hash, accountID)
}

// Links implements schema.LinkStore.
func (s *Store) Links(ctx context.Context, accountID int64, page int64) (links []schema.Link, total int64, err error) {
	rows, err := s.pool.Query(ctx, linkPage, accountID, offset(page), schema.PageSize)
	if err == nil {
		links, total, err = scanPage(rows)
	}
	return links, total, wrap(err, "read page %d of account %d's links", page, accountID)
}

// offset returns how many links are on the pages before page.
func offset(page int64) int64 {
	const lastPage = 1 << 50 // the ordinals of later pages, which are empty too, would overflow
	return min(page-1, lastPage) * schema.PageSize
}

// scanPage scans rows of a total and pageColumns. A page has at least one row.
func scanPage(rows pgx.Rows) (links []schema.Link, total int64, err error) {
	found := false
	var link schema.Link
	_, err = pgx.ForEachRow(rows, []any{&total, &link.ID, &link.AccountID, &link.DomainID, &link.Host, &link.Hash,
		&link.URL, &link.Active, &link.Ordinal, &link.CreatedAt, &link.Stopped}, func() error {
		if found = true; link.ID != 0 {
			links = append(links, link)
		}
		return nil
	})
	if err == nil && !found {
		err = pgx.ErrNoRows
	}
	return links, total, err
}

// SetActive implements schema.LinkStore.
func (s *Store) SetActive(ctx context.Context, domainID int64, hash string, active bool) error {
	err := oneRow(s.pool.Exec(ctx, `UPDATE links SET active = $3 WHERE domain_id = $1 AND hash = $2`,
		domainID, hash, active))
	return wrap(err, "set active of link %q on domain %d", hash, domainID)
}

// SetTakenDown implements schema.LinkStore.
func (s *Store) SetTakenDown(ctx context.Context, domainID int64, hash string, takenDown bool) error {
	err := oneRow(s.pool.Exec(ctx, `UPDATE links SET taken_down = $3 WHERE domain_id = $1 AND hash = $2`,
		domainID, hash, takenDown))
	return wrap(err, "set taken down of link %q on domain %d", hash, domainID)
}
