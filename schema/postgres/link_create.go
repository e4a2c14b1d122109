package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"linkstream/schema"
	"linkstream/schema/groupcommit"
)

// creationLimits bound the links that one statement creates, and the calls that wait.
var creationLimits = groupcommit.Limits{Batch: 256, Queue: 8192, Timeout: 10 * time.Second}

const (
	// createLink locks the domain's row, if it is not the default domain, so that DeleteDomain waits until the link is
	// visible.
	createLink = `
	WITH domain AS (SELECT 1 FROM domains WHERE id = $2 AND $2 <> 0 FOR KEY SHARE),
		owner AS (UPDATE accounts SET link_count = link_count + 1
			WHERE id = $1 AND ($2 = 0 OR EXISTS (SELECT 1 FROM domain)) RETURNING link_count)
	INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at, title, tags, expires_at, expired_url,
		forward_query, extension, password_hash)
	SELECT $1, $2, $3, $4, $5, link_count, $6, $7, $8, $9, $10, $11, $12, $13 FROM owner
	RETURNING id, ordinal`
	// remakeLink turns the row of a deleted link of the account into the link. It locks the account before the link.
	remakeLink = `
	WITH domain AS (SELECT 1 FROM domains WHERE id = $2 AND $2 <> 0 FOR KEY SHARE),
		owner AS MATERIALIZED (SELECT id, link_count + 1 AS ordinal FROM accounts
			WHERE id = $1 AND ($2 = 0 OR EXISTS (SELECT 1 FROM domain)) FOR NO KEY UPDATE),
		remade AS (
			UPDATE links l SET id = DEFAULT, url = $4, active = $5, ordinal = owner.ordinal, created_at = $6, title = $7, tags = $8,
				expires_at = $9, expired_url = $10, forward_query = $11, extension = $12, password_hash = $13, remade = true,
				updated_at = NULL
			FROM owner
			WHERE l.domain_id = $2 AND l.hash = $3 AND l.account_id = owner.id AND l.ordinal < 0 RETURNING l.id, l.ordinal),
		counted AS (UPDATE accounts a SET link_count = remade.ordinal FROM remade WHERE a.id = $1)
	SELECT id, ordinal FROM remade`
	// createLinks creates the links whose account and domain exist and whose hash is free; the links given have different
	// hashes. Statements of all processes lock accounts in order of their IDs and then insert in order of domain and hash,
	// so they do not deadlock. Ordinals continue from the link_count that the lock returns, which may be newer than the
	// statement's snapshot. LIMIT makes the planner use the index: for a join it would scan a small table, and the plan
	// stays when the table has grown.
	createLinks = `
	WITH wanted AS (
			SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::boolean[], $6::timestamptz[],
				$7::text[], $8::text[], $9::timestamptz[], $10::text[], $11::boolean[], $12::text[], $13::text[])
				WITH ORDINALITY AS w (account_id, domain_id, hash, url, active, created_at, title, tags, expires_at, expired_url,
					forward_query, extension, password_hash, place)),
		domain AS MATERIALIZED (SELECT id FROM domains WHERE id = ANY ($2) ORDER BY id FOR KEY SHARE),
		owner AS MATERIALIZED (SELECT id, link_count FROM accounts WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE),
		free AS MATERIALIZED (
			SELECT w.*, o.link_count + row_number() OVER (PARTITION BY w.account_id ORDER BY w.place) AS ordinal
			FROM wanted w JOIN owner o ON o.id = w.account_id
			WHERE (w.domain_id = 0 OR w.domain_id IN (SELECT id FROM domain))
				AND (SELECT l.id FROM links l WHERE l.domain_id = w.domain_id AND l.hash = w.hash LIMIT 1) IS NULL),
		counted AS (
			UPDATE accounts a SET link_count = f.ordinal
			FROM (SELECT account_id, max(ordinal) AS ordinal FROM free GROUP BY account_id) f WHERE a.id = f.account_id)
	INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at, title, tags, expires_at, expired_url,
		forward_query, extension, password_hash)
	SELECT account_id, domain_id, hash, url, active, ordinal, created_at, title, tags, expires_at, expired_url, forward_query, extension,
		password_hash
	FROM free ORDER BY place
	RETURNING domain_id, hash, id, ordinal`
)

// creation is a link to create.
type creation struct {
	link    schema.Link
	decided bool // the call has its outcome; otherwise the link was not created, and the reason is not known
}

// CreateLink implements schema.LinkStore. Links that are created at the same time are inserted by one statement. A link
// that this does not insert is inserted once more by a statement of its own, which gives the reason.
func (s *Store) CreateLink(ctx context.Context, link *schema.Link) error {
	created, err := s.creations.Submit(ctx, creation{link: *link})
	if err == nil && !created.decided {
		err = s.createOne(ctx, &created.link)
	}
	if err != nil {
		return wrap(err, "create link %q on domain %d", link.Hash, link.DomainID)
	}
	link.ID, link.Ordinal, link.UpdatedAt = created.link.ID, created.link.Ordinal, link.CreatedAt
	return nil
}

// createOne creates one link by one statement, which is one transaction and one round trip. It locks the account's row,
// which keeps the ordinals dense. A hash in use may be of a deleted link, which a second statement finds out.
func (s *Store) createOne(ctx context.Context, link *schema.Link) error {
	args := []any{link.AccountID, link.DomainID, link.Hash, link.URL, link.Active, link.CreatedAt, link.Title,
		schema.TagsColumn{List: &link.Tags}, nullIfZero(link.ExpiresAt), link.ExpiredURL, link.ForwardQuery, link.Extension.Text(),
		link.PasswordHash}
	err := s.pool.QueryRow(ctx, createLink, args...).Scan(&link.ID, &link.Ordinal)
	if err == nil || codeOf(err) != schema.CodeConflict {
		return err
	}
	remade := s.pool.QueryRow(ctx, remakeLink, args...).Scan(&link.ID, &link.Ordinal)
	if errors.Is(remade, pgx.ErrNoRows) {
		return err
	}
	return remade
}

// createBatch creates links by one statement. If the server rejects the statement, because another process took one of
// the hashes after the snapshot, no link is created, and each call continues with createOne.
func (s *Store) createBatch(ctx context.Context, batch []*groupcommit.Call[creation]) error {
	if len(batch) == 1 {
		batch[0].Value.decided = true
		return s.createOne(ctx, &batch[0].Value.link)
	}
	wanted := distinct(batch)
	rows, err := s.pool.Query(ctx, createLinks, createLinksArgs(wanted)...)
	if err == nil {
		var row schema.Link
		_, err = pgx.ForEachRow(rows, []any{&row.DomainID, &row.Hash, &row.ID, &row.Ordinal}, func() error {
			if i, found := slices.BinarySearchFunc(wanted, &row, compareHash); found {
				created := &wanted[i].Value
				created.link.ID, created.link.Ordinal, created.decided = row.ID, row.Ordinal, true
			}
			return nil
		})
	}
	if err == nil || !rejected(err) {
		return err
	}
	for _, call := range wanted {
		call.Value.decided = false
	}
	return nil
}

// rejected reports whether a working server has rejected the statement, which has then changed nothing.
func rejected(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && codeOf(err) != schema.CodeUnavailable
}

// distinct returns the first call for each domain and hash, sorted by these.
func distinct(batch []*groupcommit.Call[creation]) []*groupcommit.Call[creation] {
	sorted := slices.Clone(batch)
	slices.SortStableFunc(sorted, func(a, b *groupcommit.Call[creation]) int { return compareHash(a, &b.Value.link) })
	return slices.CompactFunc(sorted, func(a, b *groupcommit.Call[creation]) bool { return compareHash(a, &b.Value.link) == 0 })
}

func compareHash(call *groupcommit.Call[creation], link *schema.Link) int {
	other := &call.Value.link
	return cmp.Or(cmp.Compare(other.DomainID, link.DomainID), strings.Compare(other.Hash, link.Hash))
}

// createLinksArgs returns the arguments of createLinks, an array per column.
func createLinksArgs(calls []*groupcommit.Call[creation]) []any {
	accounts, links := make([]int64, len(calls)), make([]*schema.Link, len(calls))
	for i, call := range calls {
		links[i] = &call.Value.link
		accounts[i] = links[i].AccountID
	}
	return append([]any{accounts}, linkValues(links)...)
}

// linkValues returns what clients say about links, an array per column: domain_id, hash, url, active, created_at, title, tags,
// expires_at, expired_url, forward_query, extension and password_hash.
func linkValues(links []*schema.Link) []any {
	n := len(links)
	domains, hashes, urls := make([]int64, n), make([]string, n), make([]string, n)
	active, times := make([]bool, n), make([]time.Time, n)
	titles, tagged, expiries := make([]string, n), make([]string, n), make([]*time.Time, n)
	expiredURLs, forward, extensions, passwords := make([]string, n), make([]bool, n), make([]string, n), make([]string, n)
	for i, link := range links {
		domains[i], hashes[i], urls[i] = link.DomainID, link.Hash, link.URL
		active[i], times[i] = link.Active, link.CreatedAt
		titles[i], tagged[i], expiries[i] = link.Title, strings.Join(link.Tags, " "), nullIfZero(link.ExpiresAt)
		expiredURLs[i], forward[i] = link.ExpiredURL, link.ForwardQuery
		extensions[i], passwords[i] = link.Extension.Text(), link.PasswordHash
	}
	return []any{domains, hashes, urls, active, times, titles, tagged, expiries, expiredURLs, forward, extensions, passwords}
}
