package sqlite

import (
	"context"
	"errors"
	"time"

	"linkstream/schema"
	"linkstream/schema/linkstore"
)

const (
	countLinks = `UPDATE accounts SET link_count = link_count + $2 WHERE id = $1 RETURNING link_count`
	// insertLink inserts nothing if the domain does not exist.
	insertLink = `
	INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at, title, tags, expires_at, expired_url,
		forward_query, taken_down, remade, extension, password_hash, folded_url, folded_title, updated_at,
		external_id)
	SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
		nullif($20, '')
	WHERE $2 = 0 OR EXISTS (SELECT 1 FROM domains WHERE id = $2)
	RETURNING id`
)

// InsertLinks implements linkstore.DB.
func (db *DB) InsertLinks(ctx context.Context, on linkstore.Conn, links []*linkstore.NewLink) error {
	if db, ok := on.(linkstore.DB); ok {
		return db.Update(ctx, func(tx linkstore.Conn) error { return insertLinks(ctx, tx, links) })
	}
	return insertLinks(ctx, on, links)
}

func insertLinks(ctx context.Context, tx linkstore.Conn, links []*linkstore.NewLink) error {
	counts := map[int64]int64{}
	for _, l := range links {
		counts[l.AccountID]++
	}
	next := make(map[int64]int64, len(counts)) // ordinals
	for account, n := range counts {
		last, err := returned(ctx, tx, countLinks, account, n)
		if err != nil {
			return err
		}
		next[account] = last - n + 1
	}
	for _, l := range links {
		l.Ordinal = next[l.AccountID]
		next[l.AccountID]++
		foldedURL, foldedTitle := l.Folded()
		updated := l.UpdatedAt
		if updated.Equal(l.CreatedAt) {
			updated = time.Time{}
		}
		id, err := returned(ctx, tx, insertLink, l.AccountID, l.DomainID, l.Hash, l.URL, l.Active, l.Ordinal, l.CreatedAt,
			l.Title, schema.TagsColumn{List: &l.Tags}, l.ExpiresAt, l.ExpiredURL, l.ForwardQuery, l.TakenDown, l.Remade,
			l.Behaviour.Text(), l.PasswordHash, foldedURL, foldedTitle, updated, l.ExternalID)
		if err != nil {
			return err
		}
		l.ID = id
	}
	return nil
}

// returned executes a statement that changes at most one row, and returns its value, or ErrNoOwner if there is no row.
func returned(ctx context.Context, tx linkstore.Conn, text string, args ...any) (value int64, err error) {
	found, err := tx.Query(ctx, linkstore.Statement{Text: text, Args: args})
	if err != nil {
		return 0, err
	}
	defer found.Close()
	if !found.Next() {
		if err := found.Err(); err != nil {
			return 0, err
		}
		return 0, linkstore.ErrNoOwner
	}
	err = found.Scan(&value)
	found.Close()
	return value, errors.Join(err, found.Err())
}
