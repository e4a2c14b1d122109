package linkstore

import (
	"context"

	"linkstream/schema"
)

const (
	// unfolded is the condition of the index links_to_fold: the link is from before there were folds, or from a program
	// of that time.
	unfolded = `(folded_url IS NULL AND (octet_length(url) > length(url) OR {find}(lower(url), 'xn--') > 0)
		OR folded_title IS NULL AND octet_length(title) > length(title))`
	unfoldedLinks = `SELECT id, url, title FROM links WHERE ` + unfolded + ` ORDER BY id LIMIT $1`
	// foldLink changes no row if the link has been edited since.
	foldLink = `UPDATE links SET folded_url = $2, folded_title = $3 WHERE id = $1 AND url = $4 AND title = $5`
)

// folded returns the fold of a text as its column has it: NULL if the text in lower-case ASCII is enough.
func folded(text *string, fold func(string) string) *string {
	if text == nil || schema.IsFolded(*text) {
		return nil
	}
	return new(fold(*text))
}

// Folded returns columns folded_url and folded_title of a new link.
func (l *NewLink) Folded() (url, title *string) {
	return folded(&l.URL, schema.FoldURL), folded(&l.Title, schema.Fold)
}

// FoldLinks implements schema.LinkStore.
func (s *Store) FoldLinks(ctx context.Context, limit int) (int64, error) {
	fields := func(l *schema.Link) []any { return []any{&l.ID, &l.URL, &l.Title} }
	links, err := list(ctx, s.db, fields, unfoldedLinks, limit)
	if err == nil && len(links) > 0 {
		var b Batch
		for _, l := range links {
			b.exec(foldLink, l.ID, schema.FoldURL(l.URL), schema.Fold(l.Title), l.URL, l.Title)
		}
		err = s.db.Send(ctx, &b)
	}
	return int64(len(links)), wrap(err, "fold links")
}
