package linkstore

import (
	"context"

	"linkstream/schema"
)

const (
	linkColumns = `l.id, l.account_id, l.domain_id, coalesce(d.host, ''), coalesce(d.path_mode, ''), l.hash, l.url,
		l.active, l.ordinal, l.created_at, coalesce(l.updated_at, l.created_at), l.version, l.title, l.tags,
		l.expires_at, l.expired_url, l.forward_query, l.extension, l.former_hashes,
		coalesce(l.external_id, ''), ` + stopOfLink
	// stopOfLink is the schema.Stop of link l on domain d.
	stopOfLink = `CASE WHEN l.ordinal < 0 THEN 'deleted' WHEN l.taken_down THEN 'taken_down'
		WHEN (SELECT suspended FROM accounts WHERE id = l.account_id) THEN 'suspended'
		WHEN l.domain_id <> 0 AND d.verified_at IS NULL THEN 'host_lost' ELSE '' END`
	withDomain = ` LEFT JOIN domains d ON d.id = l.domain_id `
	selectLink = `SELECT ` + linkColumns + ` FROM links l` + withDomain
	// CROSS JOIN makes SQLite find the links by the keys.
	byKeys = ` FROM {keys: $1 $2} CROSS JOIN links n CROSS JOIN links l` + withDomain + `
	WHERE n.domain_id = k.domain_id AND n.hash = k.hash AND ` + byName
	linksByHash  = `SELECT ` + linkColumns + byKeys
	destinations = `
	SELECT k.place, l.id, l.account_id, l.url, l.active, l.expires_at, l.expired_url, l.forward_query, l.extension, ` +
		stopOfLink + `, ` + beneath + byKeys
	// beneath reports whether there are names that begin with the name n and a slash. A zero follows a slash in ASCII.
	beneath = `EXISTS (SELECT 1 FROM links b
		WHERE b.domain_id = n.domain_id AND b.hash > n.hash || '/' AND b.hash < n.hash || '0')`
	// A page is a range of ordinals, which the index finds directly. One statement reads one snapshot. The page is right
	// if the account has deleted no links; the second column says how many.
	linkPage = `
	SELECT a.link_count, a.deleted_links, ` + pageColumns + `
	FROM accounts a
	LEFT JOIN links l ON l.account_id = a.id AND l.ordinal > a.link_count - CAST($2 AS bigint) - CAST($3 AS bigint)
		AND l.ordinal <= a.link_count - CAST($2 AS bigint) AND l.ordinal > 0` + withDomain + `
	WHERE a.id = $1 ORDER BY l.ordinal DESC`
	// An empty page is one row without a link, so every column has a value for that.
	pageColumns = `coalesce(l.id, 0), coalesce(l.account_id, 0), coalesce(l.domain_id, 0), coalesce(d.host, ''),
		coalesce(d.path_mode, ''), coalesce(l.hash, ''), coalesce(l.url, ''), coalesce(l.active, false),
		coalesce(l.ordinal, 0), l.created_at, coalesce(l.updated_at, l.created_at), coalesce(l.version, 0),
		coalesce(l.title, ''), coalesce(l.tags, ''), l.expires_at, coalesce(l.expired_url, ''),
		coalesce(l.forward_query, false), coalesce(l.extension, ''), coalesce(l.former_hashes, ''),
		coalesce(l.external_id, ''), ` + stopOfLink
	// The links of linkPage if the account has deleted some: see schema.PageRange.
	linkCounts = `SELECT link_count, deleted_links FROM accounts WHERE id = $1`
	linkGaps   = `SELECT block, missing FROM link_gaps WHERE account_id = $1 ORDER BY block DESC`
	linkRange  = selectLink + `
	WHERE l.account_id = $1 AND l.ordinal <= $2 AND l.ordinal >= $3 ORDER BY l.ordinal DESC LIMIT $5 OFFSET $4`
	// The unary + keeps SQLite from reading all links of the account instead of those few.
	linksByID = selectLink + `WHERE l.id {in: $2} AND +l.account_id = $1 AND +l.ordinal > 0`
	// The links of an account are on its own domains and on the default domain, so the index of hashes finds them.
	// Postgres uses no index for ofOwner: it would read all links of the account.
	ownedByHash = `SELECT ` + linkColumns + ` FROM links n CROSS JOIN links l` + withDomain + `
	WHERE n.` + ofOwner + ` AND n.hash {in: $2} AND n.domain_id {among}` + domainsOfOwner + `{end} AND ` + byName + `
		AND +l.ordinal > 0
	ORDER BY l.domain_id <> 0, l.ordinal`
	ofOwner        = `account_id IS NOT DISTINCT FROM $1`
	domainsOfOwner = `SELECT id FROM domains WHERE account_id = $1 UNION ALL SELECT 0`
	linkPassword   = `SELECT password_hash, extension FROM links WHERE id = $1 AND ordinal > 0`
)

// linkFields returns where linkColumns are scanned to.
func linkFields(l *schema.Link) []any {
	return []any{&l.ID, &l.AccountID, &l.DomainID, &l.Host, &l.DomainPathMode, &l.Hash, &l.URL, &l.Active, &l.Ordinal,
		&l.CreatedAt, &l.UpdatedAt, &l.Version, &l.Title, schema.TagsColumn{List: &l.Tags}, &l.ExpiresAt, &l.ExpiredURL,
		&l.ForwardQuery, schema.BehaviourColumn{Of: &l.Behaviour}, schema.TagsColumn{List: &l.FormerHashes}, &l.ExternalID,
		&l.Stopped}
}

// keyLists returns the lists of {keys}.
func keyLists(keys []schema.LinkKey) (domains []int64, hashes []string) {
	domains, hashes = make([]int64, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		domains[i], hashes[i] = key.DomainID, key.Hash
	}
	return domains, hashes
}

// LinksByHash implements schema.LinkStore.
func (s *Store) LinksByHash(ctx context.Context, keys []schema.LinkKey) ([]schema.Link, error) {
	domains, hashes := keyLists(keys)
	links, err := list(ctx, s.db, linkFields, linksByHash, domains, hashes)
	return links, wrap(err, "read %d links", len(keys))
}

// EdgeLinks implements schema.LinkStore.
func (s *Store) EdgeLinks(ctx context.Context, keys []schema.LinkKey) ([]schema.EdgeLink, error) {
	domains, hashes := keyLists(keys)
	found := make([]schema.EdgeLink, len(keys))
	rows, err := s.db.Query(ctx, statement(destinations, []any{domains, hashes}))
	if err == nil {
		var place int64
		var d schema.EdgeLink
		err = each(rows, []any{&place, &d.LinkID, &d.AccountID, &d.URL, &d.Active, &d.ExpiresAt, &d.ExpiredURL,
			&d.ForwardQuery, schema.BehaviourColumn{Of: &d.Behaviour}, &d.Stopped, &d.Beneath}, func() error {
			found[place-1] = d
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
	size := filter.Size()
	if filter.IsZero() {
		links, total, err = s.page(ctx, accountID, offset(page, size), size)
	} else {
		links, total, err = s.filteredPage(ctx, accountID, filter, offset(page, size))
	}
	return links, total, wrap(err, "read page %d of account %d's links", page, accountID)
}

// offset returns how many links are on the pages before page.
func offset(page, size int64) int64 {
	const lastPage = 1 << 50 // the ordinals of later pages, which are empty too, would overflow
	return min(page-1, lastPage) * size
}

// page returns the page of size links that follows offset links.
func (s *Store) page(
	ctx context.Context, accountID, offset, size int64,
) (links []schema.Link, total int64, err error) {
	var deleted int64
	rows, err := s.db.Query(ctx, statement(linkPage, []any{accountID, offset, size}))
	if err == nil {
		links, err = scanPage(rows, &total, &deleted)
	}
	if err == nil && deleted > 0 {
		return s.pageWithGaps(ctx, accountID, offset, size)
	}
	return links, total, err
}

// pageWithGaps is page for an account that has deleted links. Its statements read one snapshot.
func (s *Store) pageWithGaps(
	ctx context.Context, accountID, offset, size int64,
) (links []schema.Link, total int64, err error) {
	err = s.db.View(ctx, func(tx Conn) error {
		var last, deleted int64
		if err := get(ctx, tx, []any{&last, &deleted}, linkCounts, accountID); err != nil {
			return err
		}
		if total = last - deleted; offset >= total {
			return nil
		}
		fields := func(g *schema.OrdinalGap) []any { return []any{&g.Block, &g.Missing} }
		gaps, err := list(ctx, tx, fields, linkGaps, accountID)
		if err != nil {
			return err
		}
		newest, oldest, skip := schema.PageRange(last, gaps, offset, size)
		links, err = list(ctx, tx, linkFields, linkRange, accountID, newest, oldest, skip, size)
		return err
	})
	return links, total, err
}

// scanPage scans rows of counts and pageColumns. A page has at least one row.
func scanPage(rows Rows, counts ...any) (links []schema.Link, err error) {
	found := false
	var link schema.Link
	err = each(rows, append(counts, linkFields(&link)...), func() error {
		if found = true; link.ID != 0 {
			links = append(links, link)
		}
		return nil
	})
	if err == nil && !found {
		err = ErrNoRow
	}
	return links, err
}

// OwnedLinks implements schema.LinkStore.
func (s *Store) OwnedLinks(ctx context.Context, accountID int64, hashes []string) ([]schema.Link, error) {
	links, err := list(ctx, s.db, linkFields, ownedByHash, accountID, hashes)
	return links, wrap(err, "read links with %d hashes of account %d", len(hashes), accountID)
}

// LinksByID implements schema.LinkStore.
func (s *Store) LinksByID(ctx context.Context, accountID int64, ids []int64) ([]schema.Link, error) {
	links, err := list(ctx, s.db, linkFields, linksByID, accountID, ids)
	return links, wrap(err, "read %d links of account %d", len(ids), accountID)
}

// LinkPassword implements schema.LinkStore.
func (s *Store) LinkPassword(ctx context.Context, id int64) (hash string, version int64, err error) {
	var extension *schema.Behaviour
	err = get(ctx, s.db, []any{&hash, schema.BehaviourColumn{Of: &extension}}, linkPassword, id)
	if extension != nil {
		version = extension.Password
	}
	return hash, version, wrap(err, "read password of link %d", id)
}
