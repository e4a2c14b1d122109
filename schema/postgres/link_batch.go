package postgres

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

const (
	// lockDomains and lockOwner lock what createLink locks, in the same order.
	lockDomains = `SELECT id FROM domains WHERE id = ANY ($1) ORDER BY id FOR KEY SHARE`
	lockOwner   = `SELECT link_count FROM accounts WHERE id = $1 FOR NO KEY UPDATE`
	// takenHashes finds the hashes that are in use, and says which of them the account has deleted. LIMIT makes the planner use
	// the index, as in createLinks.
	takenHashes = `
	SELECT w.place, l.account_id = $1 AND l.ordinal < 0
	FROM unnest($2::bigint[], $3::text[]) WITH ORDINALITY AS w (domain_id, hash, place)
	CROSS JOIN LATERAL (
		SELECT account_id, ordinal FROM links WHERE domain_id = w.domain_id AND hash = w.hash LIMIT 1) l`
	// clearDeleted removes what is left of deleted links, so that their hashes can be used again.
	clearDeleted = `
	DELETE FROM links WHERE id = ANY (ARRAY(
		SELECT l.id FROM unnest($2::bigint[], $3::text[]) w (domain_id, hash)
		CROSS JOIN LATERAL (
			SELECT id, account_id, ordinal FROM links WHERE domain_id = w.domain_id AND hash = w.hash LIMIT 1) l
		WHERE l.account_id = $1 AND l.ordinal < 0))
	RETURNING domain_id, hash, taken_down`
	insertLinks = `
	WITH counted AS (UPDATE accounts SET link_count = $2 WHERE id = $1)
	INSERT INTO links (account_id, domain_id, hash, url, active, created_at, title, tags, expires_at, expired_url, forward_query,
		ordinal, taken_down)
	SELECT $1, * FROM unnest($3::bigint[], $4::text[], $5::text[], $6::boolean[], $7::timestamptz[], $8::text[], $9::text[],
		$10::timestamptz[], $11::text[], $12::boolean[], $13::bigint[], $14::boolean[])
	RETURNING ordinal, id`
)

// batchAttempts bounds the transactions of one batch. Each but the last has failed because another process took one of the
// hashes, or locked some of them in another order, within milliseconds, or the first one because a drawn hash is in use.
const batchAttempts = 8

// linkBatch is a schema.LinkBatch in the transaction that creates its links.
type linkBatch struct {
	*schema.LinkBatch
	links     []schema.Link
	errs      []error
	trusting  bool                    // drawn hashes are not looked up: they are rarely in use, and then the insert fails
	last      int64                   // the ordinal of the account's newest link
	takenDown map[schema.LinkKey]bool // of deleted links that are made anew
}

// CreateLinks implements schema.LinkStore. The lock on the account's row keeps the ordinals dense, also beside CreateLink.
func (s *Store) CreateLinks(ctx context.Context, batch *schema.LinkBatch) error {
	var err error
	for attempt := range batchAttempts {
		b := &linkBatch{LinkBatch: batch, links: slices.Clone(batch.Links), errs: make([]error, len(batch.Links)), trusting: attempt == 0,
			takenDown: map[schema.LinkKey]bool{}}
		if err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return b.create(ctx, tx) }); err == nil {
			batch.Links, batch.Errs = b.links, b.errs
			return nil
		}
		if !lostRace(err) {
			break
		}
	}
	return wrap(err, "create %d links of account %d", len(batch.Links), batch.AccountID)
}

// lostRace reports whether the server has rolled a transaction back because of others at the same time.
func lostRace(err error) bool {
	return rejected(err) && (codeOf(err) == schema.CodeConflict || isDeadlock(err))
}

func (b *linkBatch) create(ctx context.Context, tx pgx.Tx) error {
	for _, step := range []func(context.Context, pgx.Tx) error{
		b.lockCall, b.lock, b.checkCall, b.claimHashes, b.insert, b.recordCall,
	} {
		if err := step(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// lock locks the account and the domains. Links on other domains fail.
func (b *linkBatch) lock(ctx context.Context, tx pgx.Tx) error {
	var queries pgx.Batch
	wanted := map[int64]bool{}
	for i := range b.links {
		wanted[b.links[i].DomainID] = true
	}
	exist := map[int64]bool{0: true}
	if len(wanted) > 1 || !wanted[0] {
		ids := make([]int64, 0, len(wanted))
		for id := range wanted {
			ids = append(ids, id)
		}
		queries.Queue(lockDomains, ids).Query(func(rows pgx.Rows) error {
			var id int64
			_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
				exist[id] = true
				return nil
			})
			return err
		})
	}
	queries.Queue(lockOwner, b.AccountID).QueryRow(func(row pgx.Row) error { return row.Scan(&b.last) })
	err := tx.SendBatch(ctx, &queries).Close()
	for i := range b.links {
		if !exist[b.links[i].DomainID] {
			b.errs[i] = schema.Errorf(schema.CodeNotFound, "there is no domain %d", b.links[i].DomainID)
		}
	}
	return err
}

// claimHashes gives links that have no hash one that is free. Links whose hash is in use fail.
func (b *linkBatch) claimHashes(ctx context.Context, tx pgx.Tx) error {
	claimed := make(map[schema.LinkKey]bool, len(b.links))
	claim := func(i int) bool {
		key := b.links[i].Key()
		again := claimed[key]
		claimed[key] = true
		return !again
	}
	var unchecked, undrawn []int
	for i := range b.links {
		switch {
		case b.errs[i] != nil:
		case b.links[i].Hash == "":
			undrawn = append(undrawn, i)
		case claim(i):
			unchecked = append(unchecked, i)
		default:
			b.errs[i] = errTaken
		}
	}
	chosen := len(unchecked) // by clients; the others may be drawn again
	for draws := 0; len(unchecked) > 0 || len(undrawn) > 0; draws++ {
		if draws == schema.MaxDraws {
			return schema.ErrNoFreeHash
		}
		var again []int
		for _, i := range undrawn {
			if b.links[i].Hash = b.NewHash(); claim(i) {
				unchecked = append(unchecked, i)
			} else {
				again = append(again, i)
			}
		}
		if b.trusting && chosen == 0 && len(again) == 0 {
			return nil
		}
		taken, err := b.taken(ctx, tx, unchecked)
		if err != nil {
			return err
		}
		for _, n := range taken {
			if i := unchecked[n]; n < chosen {
				b.errs[i] = errTaken
			} else {
				again = append(again, i)
			}
		}
		unchecked, undrawn, chosen = nil, again, 0
	}
	return nil
}

// errTaken is the outcome of links whose hash is in use.
var errTaken = schema.Errorf(schema.CodeConflict, "the hash is in use on the domain")

// taken returns which of the links have a hash that is in use. What is left of the account's own deleted links it removes.
func (b *linkBatch) taken(ctx context.Context, tx pgx.Tx, links []int) (taken []int, err error) {
	var place int
	var deleted bool
	var rests []int
	rows, err := tx.Query(ctx, takenHashes, append([]any{b.AccountID}, b.keys(links)...)...)
	if err != nil {
		return nil, err
	}
	_, err = pgx.ForEachRow(rows, []any{&place, &deleted}, func() error {
		if deleted {
			rests = append(rests, links[place-1])
		} else {
			taken = append(taken, place-1)
		}
		return nil
	})
	if err != nil || len(rests) == 0 {
		return taken, err
	}
	var key schema.LinkKey
	var takenDown bool
	if rows, err = tx.Query(ctx, clearDeleted, append([]any{b.AccountID}, b.keys(rests)...)...); err != nil {
		return nil, err
	}
	_, err = pgx.ForEachRow(rows, []any{&key.DomainID, &key.Hash, &takenDown}, func() error {
		b.takenDown[key] = takenDown
		return nil
	})
	return taken, err
}

// keys returns the columns of the links' keys.
func (b *linkBatch) keys(links []int) []any {
	domains, hashes := make([]int64, len(links)), make([]string, len(links))
	for n, i := range links {
		domains[n], hashes[n] = b.links[i].DomainID, b.links[i].Hash
	}
	return []any{domains, hashes}
}

// insert inserts the links that have not failed, in order of domain and hash, so that batches of several processes that want
// the same hashes do not deadlock.
func (b *linkBatch) insert(ctx context.Context, tx pgx.Tx) error {
	created := make([]*schema.Link, 0, len(b.links))
	first := b.last + 1
	for i := range b.links {
		if link := &b.links[i]; b.errs[i] == nil {
			b.last++
			link.AccountID, link.Ordinal, link.UpdatedAt = b.AccountID, b.last, link.CreatedAt
			created = append(created, link)
		}
	}
	if len(created) == 0 {
		return nil
	}
	sorted := slices.Clone(created)
	slices.SortFunc(sorted, func(x, y *schema.Link) int {
		return cmp.Or(cmp.Compare(x.DomainID, y.DomainID), strings.Compare(x.Hash, y.Hash))
	})
	ordinals, takenDown := make([]int64, len(sorted)), make([]bool, len(sorted))
	for i, link := range sorted {
		ordinals[i], takenDown[i] = link.Ordinal, b.takenDown[link.Key()]
	}
	args := append([]any{b.AccountID, b.last}, linkValues(sorted)...)
	rows, err := tx.Query(ctx, insertLinks, append(args, ordinals, takenDown)...)
	if err != nil {
		return err
	}
	var ordinal, id int64
	_, err = pgx.ForEachRow(rows, []any{&ordinal, &id}, func() error {
		created[ordinal-first].ID = id
		return nil
	})
	return err
}
