package postgres

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"linkstream/schema/linkstore"
)

// insertLinks is one statement, because other batches of the accounts wait until it is committed: it takes one round
// trip. A column is NULL if all links have what the column has by default, or what the first link has: most batches are
// a list of URLs. The plan does not depend on their number.
const insertLinks = `
	WITH domain AS MATERIALIZED (SELECT id FROM domains WHERE id = ANY ($3::bigint[]) ORDER BY id FOR KEY SHARE),
		owner AS MATERIALIZED (SELECT id, link_count FROM accounts
			WHERE id = ANY ($1::bigint[]) AND (SELECT count(*)
				FROM domain) = cardinality($3::bigint[]) ORDER BY id FOR NO KEY UPDATE),
		complete AS MATERIALIZED (SELECT WHERE (SELECT count(*) FROM owner) = cardinality($1::bigint[])),
		counted AS (UPDATE accounts a SET link_count = owner.link_count + n.links
			FROM complete, owner JOIN unnest($1::bigint[], $2::bigint[]) AS n (id, links) ON n.id = owner.id
				WHERE a.id = owner.id)
	INSERT INTO links (account_id, ordinal, hash, url, domain_id, active, created_at, title, tags, expires_at, expired_url,
		forward_query, taken_down, remade, extension, password_hash, folded_url, folded_title, updated_at,
		external_id)
	SELECT owner.id, owner.link_count + w.place, w.hash, w.url, coalesce(w.domain_id, 0), coalesce(w.active, true),
		coalesce(w.created_at, $4), coalesce(w.title, ''), coalesce(w.tags, ''), w.expires_at, coalesce(w.expired_url, ''),
		coalesce(w.forward_query, false), coalesce(w.taken_down, false), coalesce(w.remade, false), coalesce(w.extension, ''),
		coalesce(w.password_hash, ''), w.folded_url, w.folded_title, w.updated_at,
		w.external_id
	FROM complete, unnest($5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::bigint[], $10::boolean[],
		$11::timestamptz[],
		$12::text[], $13::text[], $14::timestamptz[], $15::text[], $16::boolean[], $17::boolean[], $18::boolean[],
			$19::text[],
		$20::text[], $21::text[], $22::text[], $23::timestamptz[], $24::text[]) WITH ORDINALITY
		AS w (account_id, place, hash, url, domain_id, active, created_at, title, tags, expires_at, expired_url,
			forward_query, taken_down, remade, extension, password_hash, folded_url, folded_title, updated_at,
			external_id, row)
		JOIN owner ON owner.id = coalesce(w.account_id, ($1::bigint[])[1])
	ORDER BY w.row
	RETURNING account_id, ordinal, id`

// InsertLinks implements linkstore.DB.
func (db *DB) InsertLinks(ctx context.Context, on linkstore.Conn, links []*linkstore.NewLink) error {
	found, err := on.Query(ctx, linkstore.Statement{Text: insertLinks, Args: insertArgs(links)})
	if err != nil {
		return err
	}
	defer found.Close()
	type row struct{ account, ordinal, id int64 }
	made, r := make([]row, 0, len(links)), row{}
	into := []any{&r.account, &r.ordinal, &r.id}
	for found.Next() {
		if err := found.Scan(into...); err != nil {
			return err
		}
		made = append(made, r)
	}
	if err := found.Err(); err != nil {
		return err
	}
	if len(made) != len(links) {
		return linkstore.ErrNoOwner
	}
	slices.SortFunc(made, func(x, y row) int {
		return cmp.Or(cmp.Compare(x.account, y.account), cmp.Compare(x.ordinal, y.ordinal))
	})
	byAccount := slices.Clone(links)
	slices.SortStableFunc(byAccount, func(x, y *linkstore.NewLink) int { return cmp.Compare(x.AccountID, y.AccountID) })
	for i, l := range byAccount {
		l.Ordinal, l.ID = made[i].ordinal, made[i].id
	}
	return nil
}

// insertArgs returns the arguments of insertLinks.
func insertArgs(links []*linkstore.NewLink) []any {
	var accounts, counts, domains []int64
	places := make([]int64, len(links)) // among the links of the account, from 1
	for i, l := range links {
		n := slices.Index(accounts, l.AccountID)
		if n < 0 {
			n, accounts, counts = len(accounts), append(accounts, l.AccountID), append(counts, 0)
		}
		counts[n]++
		places[i] = counts[n]
		if l.DomainID != 0 && !slices.Contains(domains, l.DomainID) {
			domains = append(domains, l.DomainID)
		}
	}
	order := make([]int, len(links))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(links[i].DomainID, links[j].DomainID), strings.Compare(links[i].Hash, links[j].Hash))
	})
	first := links[0]
	c := columns{rows: len(links)}
	ordered, hashes, urls := make([]int64, len(links)), make([]string, len(links)), make([]string, len(links))
	for row, i := range order {
		ordered[row], hashes[row], urls[row] = places[i], links[i].Hash, links[i].URL
		c.set(row, links[i], first)
	}
	if domains == nil {
		domains = []int64{} // not NULL
	}
	return []any{accounts, counts, domains, first.CreatedAt, c.accounts.values, ordered, hashes, urls, c.domains.values,
		c.active.values, c.times.values, c.titles.values, c.tags.values, c.expiries.values, c.expiredURLs.values,
		c.forward.values, c.takenDown.values, c.remade.values, c.extensions.values, c.passwords.values,
		c.foldedURLs.values, c.foldedTitles.values, c.updates.values, c.externalIDs.values}
}

// columns are the columns of links that most of them have by default.
type columns struct {
	rows                                             int
	accounts, domains                                column[int64]
	active, forward, takenDown, remade               column[bool]
	times, expiries, updates                         column[*time.Time]
	foldedURLs, foldedTitles, externalIDs            column[*string]
	titles, tags, expiredURLs, extensions, passwords column[string]
}

// set sets a row to what link has.
func (c *columns) set(row int, link, first *linkstore.NewLink) {
	c.accounts.set(c.rows, row, link.AccountID, first.AccountID)
	c.domains.set(c.rows, row, link.DomainID, 0)
	c.active.set(c.rows, row, link.Active, true)
	c.forward.set(c.rows, row, link.ForwardQuery, false)
	c.takenDown.set(c.rows, row, link.TakenDown, false)
	c.remade.set(c.rows, row, link.Remade, false)
	if !link.CreatedAt.Equal(first.CreatedAt) {
		c.times.set(c.rows, row, &link.CreatedAt, nil)
	}
	if !link.UpdatedAt.Equal(link.CreatedAt) {
		c.updates.set(c.rows, row, &link.UpdatedAt, nil)
	}
	if !link.ExpiresAt.IsZero() {
		c.expiries.set(c.rows, row, &link.ExpiresAt, nil)
	}
	c.titles.set(c.rows, row, link.Title, "")
	c.tags.set(c.rows, row, strings.Join(link.Tags, " "), "")
	c.expiredURLs.set(c.rows, row, link.ExpiredURL, "")
	c.extensions.set(c.rows, row, link.Behaviour.Text(), "")
	c.passwords.set(c.rows, row, link.PasswordHash, "")
	foldedURL, foldedTitle := link.Folded()
	c.foldedURLs.set(c.rows, row, foldedURL, nil)
	c.foldedTitles.set(c.rows, row, foldedTitle, nil)
	if link.ExternalID != "" {
		c.externalIDs.set(c.rows, row, &link.ExternalID, nil)
	}
}

// column is a column of an insert, NULL as long as no row has anything but the default.
type column[T comparable] struct{ values []T }

// set sets the value of a row.
func (c *column[T]) set(rows, row int, value, otherwise T) {
	if c.values == nil {
		if value == otherwise {
			return
		}
		c.values = make([]T, rows)
		for i := range c.values {
			c.values[i] = otherwise
		}
	}
	c.values[row] = value
}
