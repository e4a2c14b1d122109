package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"

	"linkstream/schema"
	"linkstream/schema/groupcommit"
)

//go:embed migrations
var migrations embed.FS

// Store keeps links, accounts and what belongs to them. All methods may be called concurrently.
type Store struct {
	db *database
	// What the edge and the api ask for most, prepared once for each connection.
	linkByHash, tokenByDigest, createLink, countLink *sql.Stmt
	creations                                        *groupcommit.Group[schema.Link]
}

var _ schema.LinkStore = (*Store)(nil)

// Open opens or creates the file at path and brings it up to date. Its folder must exist.
func Open(ctx context.Context, path string) (*Store, error) {
	files, err := fs.Sub(migrations, "migrations/links")
	if err != nil {
		return nil, err
	}
	// FULL syncs the log at each commit: what was answered with 201 survives a power loss.
	db, err := openFile(ctx, path, "FULL", files)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db}
	s.creations = groupcommit.New(creationLimits, s.createTogether)
	for _, statement := range []struct {
		on       *sql.DB
		query    string
		prepared **sql.Stmt
	}{
		{db.read, linkByHash, &s.linkByHash}, {db.read, tokenByDigest, &s.tokenByDigest},
		{db.write, createLink, &s.createLink}, {db.write, countLink, &s.countLink},
	} {
		if *statement.prepared, err = statement.on.PrepareContext(ctx, statement.query); err != nil {
			return nil, errors.Join(wrap(err, "prepare queries of %q", path), db.close())
		}
	}
	return s, nil
}

// Close closes the store. Calls that come later fail; those under way may fail or succeed.
func (s *Store) Close() error { return s.db.close() }

const (
	selectLink = `
	SELECT l.id, l.account_id, l.domain_id, coalesce(d.host, ''), l.hash, l.url, l.active, l.ordinal, l.created_at
	FROM links l LEFT JOIN domains d ON d.id = l.domain_id `
	linkByHash = selectLink + `WHERE l.domain_id = ? AND l.hash = ?`
	ownedLink  = selectLink + `WHERE l.account_id = ?1 AND l.hash = ?2 AND (?3 IS NULL OR l.domain_id = ?3)
	ORDER BY l.domain_id <> 0, l.ordinal LIMIT 1`
	linkPage = selectLink + `WHERE l.account_id = ? AND l.ordinal > ? AND l.ordinal <= ? ORDER BY l.ordinal DESC`
)

func scanLink(row interface{ Scan(...any) error }) (link schema.Link, err error) {
	err = row.Scan(&link.ID, &link.AccountID, &link.DomainID, &link.Host, &link.Hash, &link.URL, &link.Active,
		&link.Ordinal, millis{&link.CreatedAt})
	return link, err
}

// scanLinks takes the outcome of a query.
func scanLinks(rows *sql.Rows, err error) (links []schema.Link, _ error) {
	err = each(rows, err, func() error {
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

// OwnedLink implements schema.LinkStore.
func (s *Store) OwnedLink(ctx context.Context, accountID int64, hash string, domainID *int64) (schema.Link, error) {
	link, err := scanLink(s.db.read.QueryRowContext(ctx, ownedLink, accountID, hash, domainID))
	return link, wrap(err, "read link %q of account %d", hash, accountID)
}

// Links implements schema.LinkStore. A page is a range of ordinals, so the index leads straight to it.
func (s *Store) Links(ctx context.Context, accountID int64, page int64) (links []schema.Link, total int64, err error) {
	err = s.db.view(ctx, func(tx *sql.Tx) error {
		const count = `SELECT link_count FROM accounts WHERE id = ?`
		if err := tx.QueryRowContext(ctx, count, accountID).Scan(&total); err != nil {
			return err
		}
		if page-1 > total/schema.PageSize {
			return nil // beyond the last, perhaps so far that the ordinals below would overflow
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
