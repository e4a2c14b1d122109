package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

const (
	selectLink  = `SELECT ` + linkColumns + ` FROM links l LEFT JOIN domains d ON d.id = l.domain_id `
	linkColumns = `l.id, l.account_id, l.domain_id, coalesce(d.host, ''), l.hash, l.url, l.active, l.ordinal, l.created_at,
		coalesce(l.updated_at, l.created_at), l.title, l.tags, coalesce(l.expires_at, ` + zeroTime + `), l.expired_url,
		l.forward_query, l.extension, ` + stopOfLink
	linksByHash = selectLink + `
	JOIN unnest($1::bigint[], $2::text[]) k (domain_id, hash) ON l.domain_id = k.domain_id AND l.hash = k.hash`
	destinations = `
	SELECT k.number, l.id, l.account_id, l.url, l.active, coalesce(l.expires_at, ` + zeroTime + `), l.expired_url, l.forward_query,
		l.extension, ` + stopOfLink + `
	FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY k (domain_id, hash, number)
	JOIN links l ON l.domain_id = k.domain_id AND l.hash = k.hash LEFT JOIN domains d ON d.id = l.domain_id`
	// A page is a range of ordinals, which the index finds directly. One statement reads one snapshot. The page is right if
	// the account has deleted no links; the second column says how many.
	linkPage = `
	SELECT a.link_count, a.deleted_links, ` + pageColumns + `
	FROM accounts a
	LEFT JOIN links l ON l.account_id = a.id
		AND l.ordinal > a.link_count - $2::bigint - $3::bigint AND l.ordinal <= a.link_count - $2::bigint AND l.ordinal > 0
	LEFT JOIN domains d ON d.id = l.domain_id
	WHERE a.id = $1 ORDER BY l.ordinal DESC`
	// An empty page is one row without a link, so every column has a value for that.
	pageColumns = `coalesce(l.id, 0), coalesce(l.account_id, 0), coalesce(l.domain_id, 0), coalesce(d.host, ''),
		coalesce(l.hash, ''), coalesce(l.url, ''), coalesce(l.active, false), coalesce(l.ordinal, 0),
		coalesce(l.created_at, ` + zeroTime + `), coalesce(l.updated_at, l.created_at, ` + zeroTime + `),
		coalesce(l.title, ''), coalesce(l.tags, ''), coalesce(l.expires_at, ` + zeroTime + `), coalesce(l.expired_url, ''),
		coalesce(l.forward_query, false), coalesce(l.extension, ''), ` + stopOfLink
	// The links of linkPage if the account has deleted some: see schema.PageRange.
	linkGaps  = `SELECT block, missing FROM link_gaps WHERE account_id = $1 ORDER BY block DESC`
	linkRange = selectLink + `
	WHERE l.account_id = $1 AND l.ordinal <= $2 AND l.ordinal >= $3 ORDER BY l.ordinal DESC OFFSET $4 LIMIT $5`
	linksByID = selectLink + `WHERE l.id = ANY ($2::bigint[]) AND l.account_id = $1 AND l.ordinal > 0`
	// stopOfLink is the schema.Stop of link l on domain d.
	stopOfLink = `CASE WHEN l.ordinal < 0 THEN 'deleted' WHEN l.taken_down THEN 'taken_down'
		WHEN (SELECT suspended FROM accounts WHERE id = l.account_id) THEN 'suspended'
		WHEN l.domain_id <> 0 AND d.verified_at IS NULL THEN 'host_lost' ELSE '' END`
)

// linkFields returns where linkColumns are scanned to.
func linkFields(link *schema.Link) []any {
	return []any{&link.ID, &link.AccountID, &link.DomainID, &link.Host, &link.Hash, &link.URL, &link.Active, &link.Ordinal,
		&link.CreatedAt, &link.UpdatedAt, &link.Title, schema.TagsColumn{List: &link.Tags}, &link.ExpiresAt, &link.ExpiredURL,
		&link.ForwardQuery, schema.ExtensionColumn{Of: &link.Extension}, &link.Stopped}
}

func scanLink(row pgx.CollectableRow) (link schema.Link, err error) {
	err = row.Scan(linkFields(&link)...)
	return link, err
}

// oneLink reads the link that a query returns.
func (s *Store) oneLink(ctx context.Context, query string, args ...any) (link schema.Link, err error) {
	err = s.pool.QueryRow(ctx, query, args...).Scan(linkFields(&link)...)
	return link, err
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
	links, err := pgx.CollectRows(rows, scanLink)
	return links, wrap(err, "read %d links", len(keys))
}

// Destinations implements schema.LinkStore.
func (s *Store) Destinations(ctx context.Context, keys []schema.LinkKey) ([]schema.Destination, error) {
	domains, hashes := make([]int64, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		domains[i], hashes[i] = key.DomainID, key.Hash
	}
	found := make([]schema.Destination, len(keys))
	rows, err := s.pool.Query(ctx, destinations, domains, hashes)
	if err == nil {
		var number int64
		var d schema.Destination
		_, err = pgx.ForEachRow(rows, []any{&number, &d.LinkID, &d.AccountID, &d.URL, &d.Active, &d.ExpiresAt, &d.ExpiredURL,
			&d.ForwardQuery, schema.ExtensionColumn{Of: &d.Extension}, &d.Stopped}, func() error {
			found[number-1] = d
			return nil
		})
	}
	if err != nil {
		return nil, wrap(err, "read %d links", len(keys))
	}
	return found, nil
}

// Links implements schema.LinkStore.
func (s *Store) Links(
	ctx context.Context, accountID int64, filter schema.LinkFilter, page int64,
) (links []schema.Link, total int64, err error) {
	if !filter.IsZero() {
		return s.filteredLinks(ctx, accountID, filter, page)
	}
	var deleted int64
	rows, err := s.pool.Query(ctx, linkPage, accountID, offset(page), schema.PageSize)
	if err == nil {
		links, err = scanPage(rows, &total, &deleted)
	}
	if err == nil && deleted > 0 {
		links, total, err = s.pageWithGaps(ctx, accountID, offset(page))
	}
	return links, total, wrap(err, "read page %d of account %d's links", page, accountID)
}

// pageWithGaps returns the page of links that follows offset links. Its statements read one snapshot.
func (s *Store) pageWithGaps(ctx context.Context, accountID, offset int64) (links []schema.Link, total int64, err error) {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.pool, snapshot, func(tx pgx.Tx) error {
		var last, deleted int64
		const count = `SELECT link_count, deleted_links FROM accounts WHERE id = $1`
		if err := tx.QueryRow(ctx, count, accountID).Scan(&last, &deleted); err != nil {
			return err
		}
		if total = last - deleted; offset >= total {
			return nil
		}
		rows, err := tx.Query(ctx, linkGaps, accountID)
		if err != nil {
			return err
		}
		gaps, err := pgx.CollectRows(rows, pgx.RowToStructByPos[schema.OrdinalGap])
		if err != nil {
			return err
		}
		newest, oldest, skip := schema.PageRange(last, gaps, offset)
		if rows, err = tx.Query(ctx, linkRange, accountID, newest, oldest, skip, schema.PageSize); err != nil {
			return err
		}
		links, err = pgx.CollectRows(rows, scanLink)
		return err
	})
	return links, total, err
}

// offset returns how many links are on the pages before page.
func offset(page int64) int64 {
	const lastPage = 1 << 50 // the ordinals of later pages, which are empty too, would overflow
	return min(page-1, lastPage) * schema.PageSize
}

// scanPage scans rows of counts and pageColumns. A page has at least one row.
func scanPage(rows pgx.Rows, counts ...any) (links []schema.Link, err error) {
	found := false
	var link schema.Link
	_, err = pgx.ForEachRow(rows, append(counts, linkFields(&link)...), func() error {
		if found = true; link.ID != 0 {
			links = append(links, link)
		}
		return nil
	})
	if err == nil && !found {
		err = pgx.ErrNoRows
	}
	return links, err
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
