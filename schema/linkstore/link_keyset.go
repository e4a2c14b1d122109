package linkstore

import (
	"context"
	"errors"

	"linkstream/schema"
)

const (
	changeCounts = `SELECT link_count, change_count FROM accounts WHERE id = $1`
	// unnumbered is the condition of the index links_to_number.
	unnumbered = `account_id = $1 AND version <> numbered`
	// hasChanges has an order, because Postgres expects almost all links to be unnumbered, and would scan the table.
	hasChanges = `
	SELECT count(*) > 0 FROM (SELECT 1 FROM links WHERE ` + unnumbered + ` ORDER BY updated_at LIMIT 1) AS first`
	// changedDomain finds a domain whose links have changed. passLinks and changeLinks make the next links unnumbered.
	changedDomain = `SELECT id, changed_after FROM domains WHERE account_id = $1 AND changed_after IS NOT NULL LIMIT 1`
	passLinks     = `
	UPDATE domains SET changed_after = (` + linksOfDomain + ` LIMIT 1 OFFSET $3) WHERE id = $1 AND changed_after = $2`
	changeLinks = `
	UPDATE links SET numbered = 0 WHERE account_id = $4 AND ordinal {among}` + linksOfDomain + ` LIMIT $3{end}`
	linksOfDomain = `SELECT ordinal FROM links WHERE domain_id = $1 AND domain_id <> 0 AND ordinal > 0 AND ordinal > $2
		ORDER BY ordinal`
	// numberChanges leaves out links that other transactions are changing. The lock on the account makes the numbers
	// visible in their order.
	numberChanges = `
	UPDATE links SET numbered = version, number = n.number
	FROM (SELECT waiting.id, (SELECT change_count FROM accounts WHERE id = $1)
			+ row_number() OVER (ORDER BY waiting.updated_at) AS number
		FROM (SELECT id, updated_at FROM links WHERE ` + unnumbered + `
			ORDER BY updated_at LIMIT $2{for update skip locked}) AS waiting) AS n
	WHERE links.id = n.id`
	countChanges = `
	UPDATE accounts SET change_count = {greatest}(change_count, coalesce((SELECT number FROM links
		WHERE account_id = $1 AND number IS NOT NULL ORDER BY number DESC LIMIT 1), 0)) WHERE id = $1`
)

// LinksAfter implements schema.LinkStore. It reads a range of an index.
func (s *Store) LinksAfter(
	ctx context.Context, accountID int64, filter schema.LinkFilter, after schema.LinkPosition, limit int,
) (links []schema.Link, err error) {
	c := newCondition(accountID, filter, after)
	rows, err := s.db.Query(ctx, c.query(c.found(linkColumns)+order("l", filter)+" LIMIT "+c.arg(limit)))
	if err == nil {
		links, err = collect(rows, linkFields)
	}
	return links, wrap(err, "read account %d's links after %d", accountID, after.Ordinal)
}

// NumberChanges implements schema.LinkStore.
func (s *Store) NumberChanges(ctx context.Context, accountID int64, limit int) (numbered int64, err error) {
	var found bool
	var domain, after int64
	err = get(ctx, s.db, []any{&domain, &after}, changedDomain, accountID)
	if errors.Is(err, ErrNoRow) {
		err = get(ctx, s.db, value(&found), hasChanges, accountID)
	}
	if err == nil && (found || domain != 0) {
		var b Batch
		if domain != 0 {
			b.exec(passLinks, domain, after, limit-1)
		}
		b.get(value(new(int64)), lockAccount, accountID)
		if domain != 0 {
			b.exec(changeLinks, domain, after, limit, accountID)
		}
		b.count(&numbered, numberChanges, accountID, limit)
		b.exec(countChanges, accountID)
		err = s.sendInTurn(ctx, accountID, &b)
	}
	return numbered, wrap(err, "number changes of account %d's links", accountID)
}

// ChangedLinks implements schema.LinkStore. Its statements read one snapshot, which has all links up to the ordinal and
// all changes up to the number of the account.
func (s *Store) ChangedLinks(
	ctx context.Context, accountID int64, filter schema.LinkFilter, after schema.LinkChangePosition, limit int,
) (links []schema.Link, next schema.LinkChangePosition, err error) {
	err = s.db.View(ctx, func(tx Conn) error {
		var last schema.LinkChangePosition
		if err := get(ctx, tx, []any{&last.Ordinal, &last.Number}, changeCounts, accountID); err != nil {
			return err
		}
		if next = after; !after.Begun {
			next.Begun, next.FirstOrdinal, next.FirstNumber = true, last.Ordinal, last.Number
		}
		if next.Ordinal > last.Ordinal || next.Number > last.Number {
			return schema.Errorf(schema.CodeNotFound, "the position is after %d and %d", last.Ordinal, last.Number)
		}
		made, err := madeLinks(ctx, tx, accountID, filter, next, limit)
		if err != nil {
			return err
		}
		changed, err := numberedLinks(ctx, tx, accountID, filter, next, limit)
		if err != nil {
			return err
		}
		links = mergeChanges(made, changed, &next, last, limit)
		return nil
	})
	return links, next, wrap(err, "read changes of account %d's links", accountID)
}

// numberedLink is a link with the number of its last numbered change.
type numberedLink struct {
	schema.Link
	number int64
}

// madeLinks returns links that were made after a position and not changed since, in the order of their ordinals.
func madeLinks(
	ctx context.Context, tx Conn, accountID int64, filter schema.LinkFilter, after schema.LinkChangePosition, limit int,
) (links []schema.Link, err error) {
	c := &condition{}
	c.add("l.account_id = %s", accountID)
	// Postgres expects half of the links to meet a CASE, and would expect few to have two columns that are equal: then it
	// sorts all that follow.
	c.add("l.ordinal > CAST(%s AS bigint) AND CASE WHEN l.number IS NULL THEN l.version = l.numbered ELSE false END",
		max(after.Ordinal, 0))
	if !after.Since.IsZero() && after.Ordinal < after.FirstOrdinal {
		since := c.arg(after.Since)
		c.add("(coalesce(l.updated_at, l.created_at) >= "+since+" OR l.ordinal > CAST(%s AS bigint))", after.FirstOrdinal)
	}
	c.addFilter(filter)
	rows, err := tx.Query(ctx, c.query(c.found(linkColumns)+" ORDER BY l.ordinal LIMIT "+c.arg(limit)))
	if err == nil {
		links, err = collect(rows, linkFields)
	}
	return links, err
}

// numberedLinks returns links that have got a number after a position, in the order of the numbers.
func numberedLinks(
	ctx context.Context, tx Conn, accountID int64, filter schema.LinkFilter, after schema.LinkChangePosition, limit int,
) (links []numberedLink, err error) {
	c := &condition{}
	c.add("l.account_id = %s", accountID)
	c.add("l.number > CAST(%s AS bigint) AND "+hasDomain, after.Number)
	if !after.Since.IsZero() && after.Number < after.FirstNumber {
		since := c.arg(after.Since)
		c.add("(l.updated_at >= "+since+" OR l.number > CAST(%s AS bigint))", after.FirstNumber)
	}
	c.addFilter(filter)
	rows, err := tx.Query(ctx, c.query(c.found(linkColumns+", l.number")+" ORDER BY l.number LIMIT "+c.arg(limit)))
	if err == nil {
		links, err = collect(rows, func(l *numberedLink) []any { return append(linkFields(&l.Link), &l.number) })
	}
	return links, err
}

// mergeChanges returns up to limit of the links by the times of their changes, each list in its own order, and moves
// next behind them. last is where the lists end.
func mergeChanges(
	made []schema.Link, changed []numberedLink, next *schema.LinkChangePosition, last schema.LinkChangePosition, limit int,
) (links []schema.Link) {
	allMade, allChanged := len(made) < limit, len(changed) < limit
	for len(links) < limit && len(made)+len(changed) > 0 {
		if len(changed) == 0 || len(made) > 0 && !changed[0].UpdatedAt.Before(made[0].UpdatedAt) {
			links, next.Ordinal = append(links, made[0]), made[0].Ordinal
			made = made[1:]
		} else {
			links, next.Number = append(links, changed[0].Link), changed[0].number
			changed = changed[1:]
		}
	}
	if allMade && len(made) == 0 {
		next.Ordinal = last.Ordinal
	}
	if allChanged && len(changed) == 0 {
		next.Number = last.Number
	}
	return links
}
