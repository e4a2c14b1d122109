package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"

	"linkstream/schema"
)

const (
	selectLink = `
	SELECT l.id, l.account_id, l.domain_id, coalesce(d.host, ''), l.hash, l.url, l.active, l.ordinal, l.created_at,
		` + stopOfLink + `
	FROM links l LEFT JOIN domains d ON d.id = l.domain_id `
	linkByHash  = selectLink + `WHERE l.domain_id = ? AND l.hash = ?`
	linksByHash = selectLink + `WHERE (l.domain_id, l.hash) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))`
	ownedLink   = selectLink + `WHERE l.account_id = ?1 AND l.hash = ?2 AND (?3 IS NULL OR l.domain_id = ?3)
	ORDER BY l.domain_id <> 0, l.ordinal LIMIT 1`
	linkPage = selectLink + `WHERE l.account_id = ? AND l.ordinal > ? AND l.ordinal <= ? ORDER BY l.ordinal DESC`
	// stopOfLink is the schema.Stop of link l on domain d.
	stopOfLink = `CASE WHEN l.taken_down THEN 'taken_down'
		WHEN (SELECT suspended FROM accounts WHERE id = l.account_id) THEN 'suspended'
		WHEN l.domain_id <> 0 AND d.verified_at IS NULL THEN 'host_lost' ELSE '' END`
)

func scanLink(row interface{ Scan(...any) error }) (link schema.Link, err error) {
	err = row.Scan(&link.ID, &link.AccountID, &link.DomainID, &link.Host, &link.Hash, &link.URL, &link.Active,
		&link.Ordinal, unixMillis{&link.CreatedAt}, &link.Stopped)
	return link, err
}

// scanLinks scans all rows. Its arguments are the results of a query.
func scanLinks(rows *sql.Rows, err error) (links []schema.Link, _ error) {
	err = forEachRow(rows, err, func() error {
		link, err := scanLink(rows)
		links = append(links, link)
		return err
	})
	return links, err
}

// Link implements schema.LinkStore.
func (s *Store) Link(ctx context.Context, domainID int64, hash string) (schema.Link, error) {
	link, err := scanLink(s.linkByHash.QueryRowContext(ctx, domainID, hash))
	return link, wrap(err, "read link %q on domain %d", hash, domainID)
}

// LinksByHash implements schema.LinkStore.
func (s *Store) LinksByHash(ctx context.Context, keys []schema.LinkKey) ([]schema.Link, error) {
	pairs := make([][2]any, len(keys))
	for i, key := range keys {
		pairs[i] = [2]any{key.DomainID, key.Hash}
	}
	wanted, err := json.Marshal(pairs)
	if err != nil {
		return nil, err
	}
	links, err := scanLinks(s.linksByHash.QueryContext(ctx, string(wanted)))
	return links, wrap(err, "read %d links", len(keys))
}

// OwnedLink implements schema.LinkStore.
func (s *Store) OwnedLink(ctx context.Context, accountID int64, hash string, domainID *int64) (schema.Link, error) {
	link, err := scanLink(s.db.read.QueryRowContext(ctx, ownedLink, accountID, hash, domainID))
	return link, wrap(err, "read link %q of account %d", hash, accountID)
}

// Links implements schema.LinkStore. A page is a range of ordinals, which the index finds directly.
func (s *Store) Links(ctx context.Context, accountID int64, page int64) (links []schema.Link, total int64, err error) {
	err = s.db.view(ctx, func(tx *sql.Tx) error {
		const count = `SELECT link_count FROM accounts WHERE id = ?`
		if err := tx.QueryRowContext(ctx, count, accountID).Scan(&total); err != nil {
			return err
		}
		if page-1 > total/schema.PageSize {
			return nil // the ordinals of a page far beyond the last would overflow
		}
		newest := total - (page-1)*schema.PageSize
		var err error
		links, err = scanLinks(tx.QueryContext(ctx, linkPage, accountID, newest-schema.PageSize, newest))
		return err
	})
	if err != nil {
		return nil, 0, wrap(err, "read page %d of account %d's links", page, accountID)
	}
	return links, total, nil
}

// SetActive implements schema.LinkStore.
func (s *Store) SetActive(ctx context.Context, domainID int64, hash string, active bool) error {
	err := oneRow(s.db.write.ExecContext(ctx, `UPDATE links SET active = ? WHERE domain_id = ? AND hash = ?`,
		active, domainID, hash))
	return wrap(err, "set active of link %q on domain %d", hash, domainID)
}

// SetTakenDown implements schema.LinkStore.
func (s *Store) SetTakenDown(ctx context.Context, domainID int64, hash string, takenDown bool) error {
	err := oneRow(s.db.write.ExecContext(ctx, `UPDATE links SET taken_down = ? WHERE domain_id = ? AND hash = ?`,
		takenDown, domainID, hash))
	return wrap(err, "set taken down of link %q on domain %d", hash, domainID)
}
