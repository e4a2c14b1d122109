package linkstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"linkstream/schema"
	"linkstream/schema/groupcommit"
)

const (
	// lockDomains and lockAccount lock what DB.InsertLinks locks, in the same order.
	lockDomains = `SELECT id FROM domains WHERE id {in: $1} ORDER BY id{for key share}`
	// hashHolders finds the accounts that use the hashes: an account times -1 if the link is deleted, NULL if there is
	// none. LIMIT makes Postgres use the index: for a join it would scan a small table, and the plan stays when the table
	// has grown.
	hashHolders = `
	SELECT k.place, (SELECT CASE
			WHEN ordinal > 0 OR former_of IS NOT NULL AND (SELECT ordinal > 0 FROM links l WHERE l.id = links.former_of)
			THEN account_id ELSE -account_id END
		FROM links WHERE domain_id = k.domain_id AND hash = k.hash LIMIT 1)
	FROM {keys: $1 $2} ORDER BY k.place`
)

// creationLimits bound the links that one transaction creates, for which others wait, and the calls that wait.
var creationLimits = groupcommit.Limits{Batch: 256, Queue: 8192, Timeout: 10 * time.Second}

// creationAttempts bounds the attempts to create a batch. Each but the last has failed because another process took one
// of the hashes within milliseconds, or the first one because it looks nothing up.
const creationAttempts = 8

// ErrNoOwner is returned by DB.InsertLinks if an account or a domain of the links does not exist.
var ErrNoOwner error = schema.Errorf(schema.CodeNotFound, "there is no such account or domain")

// NewLink is a row of a link to insert.
type NewLink struct {
	*schema.Link
	TakenDown, Remade bool // of a link that its account has deleted, and that is made anew

	batch *schema.LinkBatch
	err   error // its outcome
	stand int   // the place of the link that stands for it, plus 1; 0: it is new
}

// CreateLink implements schema.LinkStore. Links that are created at the same time are inserted together, unless one of
// their accounts is locked.
func (s *Store) CreateLink(ctx context.Context, link *schema.Link) error {
	batch, err := s.creations.Submit(ctx, &schema.LinkBatch{AccountID: link.AccountID, Links: []schema.Link{*link},
		Unused: true})
	if errors.Is(err, errApart) {
		err = s.create(ctx, batch)
	}
	if err == nil {
		err = batch.Errs[0]
	}
	if err != nil {
		return wrap(err, "create link %q on domain %d", link.Hash, link.DomainID)
	}
	made := batch.Links[0]
	link.ID, link.Ordinal, link.UpdatedAt, link.Version = made.ID, made.Ordinal, made.UpdatedAt, made.Version
	return nil
}

// errApart is the outcome of calls of CreateLink whose links cannot be created together.
var errApart = errors.New("create each link apart")

// createTogether creates the links of calls of CreateLink in one statement, which locks their accounts for no longer
// than the engine executes it. If the engine refuses it, such as for an account that another transaction has locked, or
// for a hash that is taken even after a look-up, the calls go on apart.
func (s *Store) createTogether(ctx context.Context, calls []*groupcommit.Call[*schema.LinkBatch]) error {
	batches := make([]*schema.LinkBatch, len(calls))
	for i, call := range calls {
		batches[i] = call.Value
	}
	err := s.createAtOnce(ctx, batches, false)
	if schema.ErrorCode(err) == schema.CodeConflict {
		err = s.createAtOnce(ctx, batches, true)
	}
	switch code := schema.ErrorCode(err); {
	case err == nil || ctx.Err() != nil, code == schema.CodeUnavailable && !errors.Is(err, ErrAborted),
		code == schema.CodeInternal && len(calls) == 1:
		return err
	}
	return errApart
}

// CreateLinks implements schema.LinkStore.
func (s *Store) CreateLinks(ctx context.Context, batch *schema.LinkBatch) error {
	return wrap(s.create(ctx, batch), "create %d links of account %d", len(batch.Links), batch.AccountID)
}

// create creates the links of a batch in one transaction.
//
// The lock on an account's row keeps its ordinals dense, and batches of an account wait for it. So the first attempt
// looks hashes that clients have chosen up without the lock, and none that are most likely free, and then locks and
// inserts at once. The others look everything up under the locks.
func (s *Store) create(ctx context.Context, batch *schema.LinkBatch) error {
	return s.inTurn(ctx, batch.AccountID, func() (err error) {
		for attempt := range creationAttempts {
			if attempt == 0 && batch.Call == nil && batch.Reuse == nil {
				err = again(ctx, func() error { return s.createAtOnce(ctx, []*schema.LinkBatch{batch}, false) })
			} else {
				err = s.createLocked(ctx, batch)
			}
			lostRace := schema.ErrorCode(err) == schema.CodeConflict && !errors.Is(err, schema.ErrCallRepeated) &&
				!errors.Is(err, schema.ErrCallUnderWay) && !errors.Is(err, schema.ErrTooManyKeys)
			if !lostRace && !(attempt == 0 && errors.Is(err, ErrNoOwner)) {
				return err
			}
		}
		return err
	})
}

// createLocked creates the links of a batch in a transaction of several statements.
func (s *Store) createLocked(ctx context.Context, batch *schema.LinkBatch) error {
	var c *creation
	err := s.db.Update(ctx, func(tx Conn) error {
		c = newCreation([]*schema.LinkBatch{batch})
		return c.create(ctx, tx, s.engine)
	})
	if err == nil {
		c.finish()
	}
	return err
}

// createAtOnce creates the links of batches in one statement, after a look-up of the hashes if lookUp is true or a
// batch asks for it.
func (s *Store) createAtOnce(ctx context.Context, batches []*schema.LinkBatch, lookUp bool) error {
	c := newCreation(batches)
	c.atOnce, c.unused = true, c.unused && !lookUp
	err := c.claim(ctx, s.engine)
	if err == nil {
		err = c.insert(ctx, s.engine, s.engine)
	}
	if err == nil {
		c.finish()
	}
	return err
}

// creation is an attempt to create links.
type creation struct {
	batches []*schema.LinkBatch
	links   []NewLink     // of all batches
	results []schema.Link // copies of the batches' links, to which links points
	unused  bool          // see schema.LinkBatch
	atOnce  bool          // without a transaction of several statements
}

func newCreation(batches []*schema.LinkBatch) *creation {
	c, count := &creation{batches: batches, unused: true}, 0
	for _, b := range batches {
		count += len(b.Links)
	}
	c.links, c.results = make([]NewLink, 0, count), make([]schema.Link, 0, count)
	for _, b := range batches {
		c.unused = c.unused && b.Unused
		for i := range b.Links {
			c.results = append(c.results, b.Links[i])
			link := &c.results[len(c.results)-1]
			link.AccountID, link.Version = b.AccountID, 1
			if link.UpdatedAt.IsZero() {
				link.UpdatedAt = link.CreatedAt
			}
			c.links = append(c.links, NewLink{Link: link, batch: b})
		}
	}
	return c
}

// finish gives the batches their links and outcomes.
func (c *creation) finish() {
	links, errs := c.results, c.errs()
	for _, b := range c.batches {
		n := len(b.Links)
		b.Links, b.Errs = links[:n:n], errs[:n:n]
		links, errs = links[n:], errs[n:]
	}
}

func (c *creation) errs() []error {
	errs := make([]error, len(c.links))
	for i := range c.links {
		errs[i] = c.links[i].err
	}
	return errs
}

func (c *creation) create(ctx context.Context, tx Conn, db DB) error {
	batch := c.batches[0]
	if err := lockCall(ctx, tx, batch.Call); err != nil {
		return err
	}
	if err := c.lock(ctx, tx); err != nil {
		return err
	}
	if err := checkCall(ctx, tx, batch.Call); err != nil {
		return err
	}
	if err := c.reuse(ctx, tx); err != nil {
		return err
	}
	if err := c.claim(ctx, tx); err != nil {
		return err
	}
	c.reuseEarlier()
	if err := c.insert(ctx, tx, db); err != nil {
		return err
	}
	c.standIn()
	if err := c.noteTargets(ctx, tx); err != nil || batch.Call == nil {
		return err
	}
	answer, err := batch.Answer(c.results, c.errs())
	if err != nil {
		return err
	}
	return keepCall(ctx, tx, batch.Call, answer)
}

// lock locks the account and domains of a batch. Links without a domain of theirs fail.
func (c *creation) lock(ctx context.Context, tx Conn) error {
	var wanted, domains []int64
	for i := range c.links {
		wanted = append(wanted, c.links[i].DomainID)
	}
	var b Batch
	b.rows(func(rows Rows) (err error) { domains, err = collect(rows, value[int64]); return err }, lockDomains,
		distinct(wanted))
	b.get(value(new(int64)), lockAccount, c.batches[0].AccountID)
	if err := tx.Send(ctx, &b); errors.Is(err, ErrNoRow) {
		return ErrNoOwner
	} else if err != nil {
		return err
	}
	for i := range c.links {
		if l := &c.links[i]; l.DomainID != 0 && !slices.Contains(domains, l.DomainID) {
			l.err = schema.Errorf(schema.CodeNotFound, "there is no domain %d", l.DomainID)
		}
	}
	return nil
}

// distinct returns the different IDs.
func distinct(ids []int64) []int64 {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// claimHashes gives links without a hash a free one. Links whose hash is in use fail.
func (c *creation) claimHashes(ctx context.Context, db Conn) error {
	claimed := make(map[schema.LinkKey]bool, len(c.links))
	unchecked := make([]int, 0, len(c.links))
	var undrawn []int
	for i := range c.links {
		switch l := &c.links[i]; {
		case l.err != nil || l.stand != 0:
		case l.Hash == "" && l.batch.NewHash != nil:
			undrawn = append(undrawn, i)
		default:
			claimed[l.Key()] = true
			unchecked = append(unchecked, i)
		}
	}
	chosen := len(unchecked) // by clients; the others may be drawn again
	for draws := 0; len(unchecked) > 0 || len(undrawn) > 0; draws++ {
		if draws == schema.MaxDraws {
			return schema.ErrNoFreeHash
		}
		var again []int
		for _, i := range undrawn {
			if c.links[i].Hash = c.links[i].batch.NewHash(); claimed[c.links[i].Key()] {
				again = append(again, i)
			} else {
				claimed[c.links[i].Key()] = true
				unchecked = append(unchecked, i)
			}
		}
		if c.atOnce && (chosen == 0 || c.unused) && len(again) == 0 {
			c.grant(unchecked[:chosen]) // most likely all are free; otherwise the insert fails
			return nil
		}
		taken, err := c.taken(ctx, db, unchecked)
		if err != nil {
			return err
		}
		for _, n := range taken {
			if i := unchecked[n]; n < chosen {
				c.links[i].err = schema.ErrHashTaken
			} else {
				again = append(again, i)
			}
		}
		unchecked, undrawn, chosen = nil, again, 0
	}
	return nil
}

// grant gives each hash to the first of some links that have it. The others fail.
func (c *creation) grant(some []int) {
	granted := make(map[schema.LinkKey]bool, len(some))
	for _, i := range some {
		if key := c.links[i].Key(); granted[key] {
			c.links[i].err = schema.ErrHashTaken
		} else {
			granted[key] = true
		}
	}
}

// taken returns the places in some of the links at which the hash is in use. It frees the names of links that their
// accounts have deleted.
func (c *creation) taken(ctx context.Context, db Conn, some []int) (taken []int, err error) {
	keys := make([]schema.LinkKey, len(some))
	for n, i := range some {
		keys[n] = c.links[i].Key()
	}
	domains, hashes := keyLists(keys)
	rows, err := db.Query(ctx, statement(hashHolders, []any{domains, hashes}))
	if err != nil {
		return nil, err
	}
	var place int
	var holder *int64
	var rests Batch
	granted := make(map[schema.LinkKey]bool, len(some))
	err = each(rows, []any{&place, &holder}, func() error {
		link := &c.links[some[place-1]]
		if granted[link.Key()] || holder != nil && *holder != -link.AccountID {
			taken = append(taken, place-1)
			return nil
		}
		granted[link.Key()] = true
		if holder != nil {
			link.Remade = true
			rests.freeDeleted(link.AccountID, link.Key(), &link.TakenDown)
		}
		return nil
	})
	switch {
	case err != nil || len(rests.Parts) == 0:
		return taken, err
	case c.atOnce:
		return nil, schema.ErrHashTaken // under the lock, the row is removed
	default:
		return taken, db.Send(ctx, &rests)
	}
}

// insert inserts the links that have not failed.
func (c *creation) insert(ctx context.Context, on Conn, db DB) error {
	links := make([]*NewLink, 0, len(c.links))
	for i := range c.links {
		if c.links[i].err == nil && c.links[i].stand == 0 {
			links = append(links, &c.links[i])
		}
	}
	if len(links) == 0 && !c.atOnce {
		return nil
	}
	if len(links) == 0 {
		return ErrNoOwner // or the account exists: only the locks know
	}
	return db.InsertLinks(ctx, on, links)
}
