package postgres

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// column is a column of an insert, NULL as long as no row has anything but the default.
type column[T any] struct {
	values []T
	rows   int
}

// set sets the value of a row, which begins a column whose other rows have the given default so far.
func (c *column[T]) set(row int, value, otherwise T) {
	if c.values == nil {
		c.values = make([]T, c.rows)
		for i := range c.values {
			c.values[i] = otherwise
		}
	}
	c.values[row] = value
}

// insertArgs returns the arguments of insertLinks for the links at places.
func (b *linkBatch) insertArgs(places []int) []any {
	n := len(places)
	order := make([]int64, n) // places from 1, by domain and hash
	for i := range order {
		order[i] = int64(i + 1)
	}
	slices.SortFunc(order, func(x, y int64) int {
		one, other := &b.links[places[x-1]], &b.links[places[y-1]]
		return cmp.Or(cmp.Compare(one.DomainID, other.DomainID), strings.Compare(one.Hash, other.Hash))
	})
	var createdAt time.Time
	if n > 0 {
		createdAt = b.links[places[0]].CreatedAt
	}
	hashes, urls, texts := make([]string, n), make([]string, n), column[string]{rows: n}
	domains, times, expiries := column[int64]{rows: n}, column[*time.Time]{rows: n}, column[*time.Time]{rows: n}
	active, forward, takenDown, remade := column[bool]{rows: n}, column[bool]{rows: n}, column[bool]{rows: n}, column[bool]{rows: n}
	titles, tags, expiredURLs, extensions, passwords := texts, texts, texts, texts, texts
	for i, place := range order {
		link := &b.links[places[place-1]]
		hashes[i], urls[i] = link.Hash, link.URL
		if link.DomainID != 0 {
			domains.set(i, link.DomainID, 0)
		}
		if !link.Active {
			active.set(i, false, true)
		}
		if !link.CreatedAt.Equal(createdAt) {
			times.set(i, &link.CreatedAt, nil)
		}
		if link.Title != "" {
			titles.set(i, link.Title, "")
		}
		if len(link.Tags) > 0 {
			tags.set(i, strings.Join(link.Tags, " "), "")
		}
		if !link.ExpiresAt.IsZero() {
			expiries.set(i, &link.ExpiresAt, nil)
		}
		if link.ExpiredURL != "" {
			expiredURLs.set(i, link.ExpiredURL, "")
		}
		if link.ForwardQuery {
			forward.set(i, true, false)
		}
		if text := link.Extension.Text(); text != "" {
			extensions.set(i, text, "")
		}
		if link.PasswordHash != "" {
			passwords.set(i, link.PasswordHash, "")
		}
		if down, again := b.takenDown[link.Key()]; again {
			takenDown.set(i, down, false)
			remade.set(i, true, false)
		}
	}
	return []any{b.AccountID, b.domains(), n, createdAt, order, hashes, urls, domains.values, active.values, times.values, titles.values,
		tags.values, expiries.values, expiredURLs.values, forward.values, takenDown.values, remade.values, extensions.values,
		passwords.values}
}
