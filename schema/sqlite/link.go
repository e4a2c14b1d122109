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
		coalesce(l.updated_at, l.created_at), l.title, l.tags, l.expires_at, l.expired_url, l.forward_query, l.extension, ` + stopOfLink + `
	FROM links l LEFT JOIN domains d ON d.id = l.domain_id `
	linksByHash = selectLink + `WHERE (l.domain_id, l.hash) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))`
	// CROSS JOIN makes SQLite find the links by the keys, in the order of these.
	destinations = `
	SELECT json_each.key, l.id, l.account_id, l.url, l.active, l.expires_at, l.expired_url, l.forward_query, l.extension, ` + stopOfLink + `
	FROM json_each(?) CROSS JOIN links l ON l.domain_id = json_each.value ->> 0 AND l.hash = json_each.value ->> 1
		LEFT JOIN domains d ON d.id = l.domain_id`
	linkGaps = `SELECT block, missing FROM link_gaps WHERE account_id = ? ORDER BY block DESC`
	linkPage = selectLink + `WHERE l.account_id = ?1 AND l.ordinal <= ?2 AND l.ordinal >= ?3
	ORDER BY l.ordinal DESC LIMIT ?5 OFFSET ?4`
	// The unary + keeps SQLite from reading all links of the account instead of those few.
	linksByID = selectLink + `WHERE l.id IN (SELECT value FROM json_each(?)) AND +l.account_id = ? AND +l.ordinal > 0`
	// stopOfLink is the schema.Stop of link l on domain d.
	stopOfLink = `CASE WHEN l.ordinal < 0 THEN 'deleted' WHEN l.taken_down THEN 'taken_down'
		WHEN (SELECT suspended FROM accounts WHERE id = l.account_id) THEN 'suspended'
		WHEN l.domain_id <> 0 AND d.verified_at IS NULL THEN 'host_lost' ELSE '' END`
)

func scanLink(row interface{ Scan(...any) error }) (link schema.Link, err error) {
	err = row.Scan(&link.ID, &link.AccountID, &link.DomainID, &link.Host, &link.Hash, &link.URL, &link.Active,
		&link.Ordinal, unixMillis{&link.CreatedAt}, unixMillis{&link.UpdatedAt}, &link.Title, schema.TagsColumn{List: &link.Tags},
		unixMillis{&link.ExpiresAt}, &link.ExpiredURL, &link.ForwardQuery, schema.ExtensionColumn{Of: &link.Extension}, &link.Stopped)
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

// LinksByHash implements schema.LinkStore.
func (s *Store) LinksByHash(ctx context.Context, keys []schema.LinkKey) ([]schema.Link, error) {
	wanted, err := encodeKeys(keys)
	if err != nil {
		return nil, err
	}
	links, err := scanLinks(s.db.query(ctx, linksByHash, wanted))
	return links, wrap(err, "read %d links", len(keys))
}

// encodeKeys returns keys as the parameter of linksByHash and destinations.
func encodeKeys(keys []schema.LinkKey) (string, error) {
	pairs := make([][2]any, len(keys))
	for i, key := range keys {
		pairs[i] = [2]any{key.DomainID, key.Hash}
	}
	encoded, err := json.Marshal(pairs)
	return string(encoded), err
}

// Destinations implements schema.LinkStore.
func (s *Store) Destinations(ctx context.Context, keys []schema.LinkKey) ([]schema.Destination, error) {
	wanted, err := encodeKeys(keys)
	if err != nil {
		return nil, err
	}
	found := make([]schema.Destination, len(keys))
	rows, err := s.db.query(ctx, destinations, wanted)
	err = forEachRow(rows, err, func() error {
		var i int
		var d schema.Destination
		err := rows.Scan(&i, &d.LinkID, &d.AccountID, &d.URL, &d.Active, unixMillis{&d.ExpiresAt}, &d.ExpiredURL, &d.ForwardQuery,
			schema.ExtensionColumn{Of: &d.Extension}, &d.Stopped)
		if err == nil {
			found[i] = d
		}
		return err
	})
	return found, wrap(err, "read %d links", len(keys))
}

// Links implements schema.LinkStore.
func (s *Store) Links(
	ctx context.Context, accountID int64, filter schema.LinkFilter, page int64,
) (links []schema.Link, total int64, err error) {
	if filter.IsZero() {
		links, total, err = s.page(ctx, accountID, page)
	} else {
		links, total, err = s.filteredPage(ctx, accountID, filter, page)
	}
	return links, total, wrap(err, "read page %d of account %d's links", page, accountID)
}

// page returns a page of all links. It is a range of ordinals, which the index finds directly.
func (s *Store) page(ctx context.Context, accountID, page int64) (links []schema.Link, total int64, err error) {
	err = s.db.view(ctx, func(tx *snapshot) error {
		var last, deleted int64
		const count = `SELECT link_count, deleted_links FROM accounts WHERE id = ?`
		if err := tx.queryRow(ctx, count, accountID).Scan(&last, &deleted); err != nil {
			return err
		}
		if total = last - deleted; page-1 > total/schema.PageSize {
			return nil // the ordinals of a page far beyond the last would overflow
		}
		var gaps []schema.OrdinalGap
		if deleted > 0 {
			if gaps, err = readGaps(ctx, tx, accountID); err != nil {
				return err
			}
		}
		newest, oldest, skip := schema.PageRange(last, gaps, (page-1)*schema.PageSize)
		links, err = scanLinks(tx.query(ctx, linkPage, accountID, newest, oldest, skip, schema.PageSize))
		return err
	})
	return links, total, err
}

func readGaps(ctx context.Context, tx *snapshot, accountID int64) (gaps []schema.OrdinalGap, _ error) {
	rows, err := tx.query(ctx, linkGaps, accountID)
	err = forEachRow(rows, err, func() error {
		var gap schema.OrdinalGap
		err := rows.Scan(&gap.Block, &gap.Missing)
		gaps = append(gaps, gap)
		return err
	})
	return gaps, err
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
