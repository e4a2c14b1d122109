package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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
	// clearDeleted removes the rows of deleted links, so that their hashes can be used again.
	clearDeleted = `
	DELETE FROM links WHERE id = ANY (ARRAY(
		SELECT l.id FROM unnest($2::bigint[], $3::text[]) w (domain_id, hash)
		CROSS JOIN LATERAL (
			SELECT id, account_id, ordinal FROM links WHERE domain_id = w.domain_id AND hash = w.hash LIMIT 1) l
		WHERE l.account_id = $1 AND l.ordinal < 0))
	RETURNING domain_id, hash, taken_down`
	// insertLinks locks what createLink locks, in the same order, and inserts the links in their order, with ordinals by their
	// places. It inserts nothing if the account or one of the domains does not exist. A column is NULL if all links have what
	// the column has by default: most batches are a list of URLs.
	insertLinks = `
	WITH domain AS MATERIALIZED (SELECT id FROM domains WHERE id = ANY ($2::bigint[]) ORDER BY id FOR KEY SHARE),
		owner AS MATERIALIZED (SELECT link_count FROM accounts
			WHERE id = $1 AND (SELECT count(*) FROM domain) = cardinality($2::bigint[]) FOR NO KEY UPDATE),
		counted AS (UPDATE accounts a SET link_count = owner.link_count + $3 FROM owner WHERE a.id = $1)
	INSERT INTO links (account_id, ordinal, hash, url, domain_id, active, created_at, title, tags, expires_at, expired_url,
		forward_query, taken_down, remade, extension, password_hash)
	SELECT $1, owner.link_count + w.place, w.hash, w.url, coalesce(w.domain_id, 0), coalesce(w.active, true),
		coalesce(w.created_at, $4), coalesce(w.title, ''), coalesce(w.tags, ''), w.expires_at, coalesce(w.expired_url, ''),
		coalesce(w.forward_query, false), coalesce(w.taken_down, false), coalesce(w.remade, false), coalesce(w.extension, ''),
		coalesce(w.password_hash, '')
	FROM owner, unnest($5::bigint[], $6::text[], $7::text[], $8::bigint[], $9::boolean[], $10::timestamptz[], $11::text[],
		$12::text[], $13::timestamptz[], $14::text[], $15::boolean[], $16::boolean[], $17::boolean[], $18::text[], $19::text[])
		AS w (place, hash, url, domain_id, active, created_at, title, tags, expires_at, expired_url, forward_query, taken_down,
			remade, extension, password_hash)
	RETURNING ordinal, id`
)

// batchAttempts bounds the attempts to create a batch. Each but the last has failed because another process took one of the
// hashes, or locked some of them in another order, within milliseconds, or the first one because a drawn hash is in use.
const batchAttempts = 8

// batchQuerier is a transaction, or a pool whose statements are transactions of their own.
type batchQuerier interface {
	querier
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, queries *pgx.Batch) pgx.BatchResults
}

// linkBatch is a schema.LinkBatch in an attempt to create its links.
type linkBatch struct {
	*schema.LinkBatch
	links     []schema.Link
	errs      []error
	first     bool                    // of the attempts: hashes that are most likely free are not looked up; else the insert fails
	atOnce    bool                    // without a transaction of several statements
	takenDown map[schema.LinkKey]bool // of deleted links that are made anew
}

// CreateLinks implements schema.LinkStore. The lock on the account's row keeps the ordinals dense, also beside CreateLink. The
// batches of an account wait for each other's locks, so the first attempt locks it in one statement, with no round trip until the
// commit.
func (s *Store) CreateLinks(ctx context.Context, batch *schema.LinkBatch) error {
	var err error
	for attempt := range batchAttempts {
		b := &linkBatch{LinkBatch: batch, links: slices.Clone(batch.Links), errs: make([]error, len(batch.Links)), first: attempt == 0}
		if b.atOnce = b.first && batch.Call == nil; b.atOnce {
			err = b.createAtOnce(ctx, s.pool)
		} else {
			err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return b.create(ctx, tx) })
		}
		if err == nil {
			batch.Links, batch.Errs = b.links, b.errs
			return nil
		}
		if !errors.Is(err, errNotAtOnce) && !lostRace(err) {
			break
		}
	}
	return wrap(err, "create %d links of account %d", len(batch.Links), batch.AccountID)
}

// lostRace reports whether the server has rolled a transaction back because of others at the same time.
func lostRace(err error) bool {
	return rejected(err) && (codeOf(err) == schema.CodeConflict || isDeadlock(err))
}

// errNotAtOnce means that a batch needs a transaction of several statements, and that nothing was created.
var errNotAtOnce = errors.New("the batch needs a transaction")

// createAtOnce creates the links by one statement, after hashes that clients have chosen were looked up. If somebody takes one of
// them in between, the statement fails.
func (b *linkBatch) createAtOnce(ctx context.Context, pool *pgxpool.Pool) error {
	if err := b.claimHashes(ctx, pool); err != nil {
		return err
	}
	return b.insert(ctx, pool)
}

func (b *linkBatch) create(ctx context.Context, tx pgx.Tx) error {
	for _, step := range []func(context.Context, batchQuerier) error{
		b.lockCall, b.lock, b.checkCall, b.claimHashes, b.insert, b.recordCall,
	} {
		if err := step(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

func (b *linkBatch) lockCall(ctx context.Context, db batchQuerier) error {
	return lockCall(ctx, db, b.Call)
}

func (b *linkBatch) checkCall(ctx context.Context, db batchQuerier) error {
	return checkCall(ctx, db, b.Call)
}

func (b *linkBatch) recordCall(ctx context.Context, db batchQuerier) error {
	if b.Call == nil {
		return nil
	}
	answer, err := b.Answer(b.links, b.errs)
	if err != nil {
		return err
	}
	return keepCall(ctx, db, b.Call, answer)
}

// lock locks the account and the domains. Links on other domains fail.
func (b *linkBatch) lock(ctx context.Context, db batchQuerier) error {
	var queries pgx.Batch
	wanted := b.domains()
	exist := map[int64]bool{0: true}
	if len(wanted) > 0 {
		queries.Queue(lockDomains, wanted).Query(func(rows pgx.Rows) error {
			var id int64
			_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
				exist[id] = true
				return nil
			})
			return err
		})
	}
	queries.Queue(lockOwner, b.AccountID).QueryRow(func(row pgx.Row) error { return row.Scan(new(int64)) })
	err := db.SendBatch(ctx, &queries).Close()
	for i := range b.links {
		if !exist[b.links[i].DomainID] {
			b.errs[i] = schema.Errorf(schema.CodeNotFound, "there is no domain %d", b.links[i].DomainID)
		}
	}
	return err
}

// domains returns the domains of the links that have not failed, without the default domain.
func (b *linkBatch) domains() []int64 {
	ids := []int64{}
	for i := range b.links {
		if id := b.links[i].DomainID; id != 0 && b.errs[i] == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// claimHashes gives links without a hash a free one. Links whose hash is in use fail.
func (b *linkBatch) claimHashes(ctx context.Context, db batchQuerier) error {
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
		if b.first && (chosen == 0 || b.Unused) && len(again) == 0 {
			return nil
		}
		taken, err := b.taken(ctx, db, unchecked)
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

// taken returns which of the links have a hash that is in use. It removes the rows of the account's own deleted links.
func (b *linkBatch) taken(ctx context.Context, db batchQuerier, links []int) (taken []int, err error) {
	var place int
	var deleted bool
	var rests []int
	rows, err := db.Query(ctx, takenHashes, append([]any{b.AccountID}, b.keys(links)...)...)
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
	if b.atOnce {
		return nil, errNotAtOnce
	}
	var key schema.LinkKey
	var takenDown bool
	if rows, err = db.Query(ctx, clearDeleted, append([]any{b.AccountID}, b.keys(rests)...)...); err != nil {
		return nil, err
	}
	_, err = pgx.ForEachRow(rows, []any{&key.DomainID, &key.Hash, &takenDown}, func() error {
		if b.takenDown == nil {
			b.takenDown = map[schema.LinkKey]bool{}
		}
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
func (b *linkBatch) insert(ctx context.Context, db batchQuerier) error {
	places := make([]int, 0, len(b.links)) // in links
	for i := range b.links {
		if link := &b.links[i]; b.errs[i] == nil {
			link.AccountID, link.UpdatedAt = b.AccountID, link.CreatedAt
			places = append(places, i)
		}
	}
	if len(places) == 0 && !b.atOnce {
		return nil
	}
	rows, err := db.Query(ctx, insertLinks, b.insertArgs(places)...)
	if err != nil {
		return err
	}
	ids := make([]createdRow, 0, len(places))
	var row createdRow
	_, err = pgx.ForEachRow(rows, []any{&row.ordinal, &row.id}, func() error {
		ids = append(ids, row)
		return nil
	})
	if err != nil {
		return err
	}
	if len(ids) != len(places) || len(ids) == 0 { // the account or a domain does not exist
		return errNotAtOnce
	}
	slices.SortFunc(ids, func(x, y createdRow) int { return cmp.Compare(x.ordinal, y.ordinal) })
	for n, i := range places {
		b.links[i].Ordinal, b.links[i].ID = ids[n].ordinal, ids[n].id
	}
	return nil
}

type createdRow struct{ ordinal, id int64 }
