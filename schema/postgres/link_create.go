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

// creationLimits bound the links that are created together: those of a batch are one message to the server.
var creationLimits = groupcommit.Limits{Batch: 256, Queue: 8192, Timeout: 10 * time.Second}

const (
	// The lock on the domain's row, if it has one, keeps DeleteDomain waiting until the link is there to be seen.
	createLink = `
	WITH domain AS (SELECT 1 FROM domains WHERE id = $2 AND $2 <> 0 FOR KEY SHARE),
		owner AS (UPDATE accounts SET link_count = link_count + 1
			WHERE id = $1 AND ($2 = 0 OR EXISTS (SELECT 1 FROM domain)) RETURNING link_count)
	INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
	SELECT $1, $2, $3, $4, $5, link_count, $6 FROM owner
	RETURNING id, ordinal`
	// createLinks creates those links of its arguments, no two of which may have one hash, that nothing stands in the way
	// of. Each statement of any node locks accounts by ID and then inserts by domain and hash, so that none waits for one
	// that waits for it. The ordinals count on from what the account has once it is locked, which may be more than what
	// the statement sees of it elsewhere. LIMIT leads to the index: a join would read a small table in full, and the plan
	// outlives the time in which it is small.
	createLinks = `
	WITH wanted AS (
			SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::boolean[], $6::timestamptz[])
				WITH ORDINALITY AS w (account_id, domain_id, hash, url, active, created_at, place)),
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
	INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at)
	SELECT account_id, domain_id, hash, url, active, ordinal, created_at FROM free ORDER BY place
	RETURNING domain_id, hash, id, ordinal`
)

// creation is a link to create.
type creation struct {
	link schema.Link
	done bool // with the outcome that the call has; else none is known yet
}

// CreateLink implements schema.LinkStore. Links that are created at the same time go to the server together. One that is
// not among those that were created goes there again on its own, and learns what stands in its way.
func (s *Store) CreateLink(ctx context.Context, link *schema.Link) error {
	made, err := s.creations.Submit(ctx, creation{link: *link})
	if err == nil && !made.done {
		err = s.create(ctx, &made.link)
	}
	if err != nil {
		return wrap(err, "create link %q on domain %d", link.Hash, link.DomainID)
	}
	link.ID, link.Ordinal = made.link.ID, made.link.Ordinal
	return nil
}

// create creates one link. One statement is one transaction and one round trip; the account's row, locked by it, keeps the
// ordinals dense.
func (s *Store) create(ctx context.Context, link *schema.Link) error {
	return s.pool.QueryRow(ctx, createLink,
		link.AccountID, link.DomainID, link.Hash, link.URL, link.Active, link.CreatedAt).
		Scan(&link.ID, &link.Ordinal)
}

// createTogether creates what nothing stands in the way of, in one statement, too. If the server refuses that, since a
// link of another node came in between, nothing is created, and each call does it alone.
func (s *Store) createTogether(ctx context.Context, batch []*groupcommit.Call[creation]) error {
	if len(batch) == 1 {
		batch[0].Value.done = true
		return s.create(ctx, &batch[0].Value.link)
	}
	wanted := distinct(batch)
	rows, err := s.pool.Query(ctx, createLinks, columnsOf(wanted)...)
	if err == nil {
		var made schema.Link
		_, err = pgx.ForEachRow(rows, []any{&made.DomainID, &made.Hash, &made.ID, &made.Ordinal}, func() error {
			if i, found := slices.BinarySearchFunc(wanted, &made, byHash); found {
				own := &wanted[i].Value
				own.link.ID, own.link.Ordinal, own.done = made.ID, made.Ordinal, true
			}
			return nil
		})
	}
	if err == nil || !refused(err) {
		return err
	}
	for _, call := range wanted {
		call.Value.done = false
	}
	return nil
}

// refused reports an answer of a server that is at work and has done nothing.
func refused(err error) bool {
	var answered *pgconn.PgError
	return errors.As(err, &answered) && codeOf(err) != schema.CodeUnavailable
}

// distinct returns calls for links of different hashes, in their order, the first one to come of each.
func distinct(batch []*groupcommit.Call[creation]) []*groupcommit.Call[creation] {
	sorted := slices.Clone(batch)
	slices.SortStableFunc(sorted, func(a, b *groupcommit.Call[creation]) int { return byHash(a, &b.Value.link) })
	return slices.CompactFunc(sorted, func(a, b *groupcommit.Call[creation]) bool { return byHash(a, &b.Value.link) == 0 })
}

func byHash(call *groupcommit.Call[creation], link *schema.Link) int {
	own := &call.Value.link
	return cmp.Or(cmp.Compare(own.DomainID, link.DomainID), strings.Compare(own.Hash, link.Hash))
}

// columnsOf returns the arguments of createLinks.
func columnsOf(calls []*groupcommit.Call[creation]) []any {
	n := len(calls)
	accounts, domains, hashes := make([]int64, n), make([]int64, n), make([]string, n)
	urls, active, times := make([]string, n), make([]bool, n), make([]time.Time, n)
	for i, call := range calls {
		link := &call.Value.link
		accounts[i], domains[i], hashes[i] = link.AccountID, link.DomainID, link.Hash
		urls[i], active[i], times[i] = link.URL, link.Active, link.CreatedAt
	}
	return []any{accounts, domains, hashes, urls, active, times}
}
