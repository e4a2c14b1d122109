package linkstore

import (
	"context"
	"errors"
	"time"

	"linkstream/schema"
)

const (
	// targetsOf finds links by the end of a URL: most URLs of an account differ there. A link of the table may lead
	// elsewhere by now.
	targetsOf = `
	SELECT ordinal FROM link_targets WHERE account_id = $1 AND target = substr($2, length($2) - 23) AND ordinal < $3
	ORDER BY ordinal DESC LIMIT $4`
	reusableLinks = selectLink + `
	WHERE l.account_id = $1 AND l.ordinal {in: $2} AND l.url = $3 AND l.domain_id = $4 AND l.active AND NOT l.taken_down
		AND l.password_hash = '' AND (l.expires_at IS NULL OR l.expires_at > $5)
		AND coalesce(CAST({json: l.extension} ->> 'max_clicks' AS bigint)
			> (SELECT CAST(coalesce(sum(spent), 0) AS bigint) FROM leases WHERE link_id = l.id), true)
	ORDER BY l.ordinal DESC`
	// reusablePage is how many links one call reads at a time.
	reusablePage = 64

	targetsLeft   = `SELECT link_count - targets_until FROM accounts WHERE id = $1`
	insertTargets = `
	INSERT INTO link_targets (account_id, target, ordinal)
	SELECT l.account_id, substr(l.url, length(l.url) - 23), abs(l.ordinal) FROM accounts a CROSS JOIN links l
	WHERE a.id = $1 AND l.account_id = a.id AND l.url <> '' AND `
	noteTargets = insertTargets + `
		l.ordinal > a.targets_until AND l.ordinal <= a.targets_until + $2` + unlessNoted
	noteDeletedTargets = insertTargets + `
		l.ordinal < -a.targets_until AND l.ordinal >= -a.targets_until - $2` + unlessNoted
	unlessNoted = ` ON CONFLICT DO NOTHING`
	moveTargets = `
	UPDATE accounts SET targets_until = {least}(link_count, targets_until + $2) WHERE id = $1`
)

// NoteTargets implements schema.LinkStore. After an edit of a URL, a trigger notes it.
func (s *Store) NoteTargets(ctx context.Context, accountID int64, limit int) (left int64, err error) {
	err = get(ctx, s.db, value(&left), targetsLeft, accountID)
	if err == nil && left > 0 {
		var b Batch
		b.get(value(new(int64)), lockAccount, accountID)
		b.noteTargets(&left, accountID, limit)
		err = s.sendInTurn(ctx, accountID, &b)
	}
	return left, wrap(err, "note targets of account %d", accountID)
}

// noteTargets adds the statements that note the targets of links of an account, which the transaction has locked.
func (b *Batch) noteTargets(left *int64, accountID int64, limit int) {
	for _, text := range []string{noteTargets, noteDeletedTargets, moveTargets} {
		b.exec(text, accountID, limit)
	}
	b.get(value(left), targetsLeft, accountID)
}

// ReusableLink implements schema.LinkStore.
func (s *Store) ReusableLink(
	ctx context.Context, accountID int64, key schema.ReuseKey, at time.Time, match func(schema.Link) bool,
) (schema.Link, error) {
	link, err := reusable(ctx, s.db, accountID, key, at, match)
	return link, wrap(err, "find link of account %d to reuse", accountID)
}

func reusable(
	ctx context.Context, c Conn, accountID int64, key schema.ReuseKey, at time.Time, match func(schema.Link) bool,
) (schema.Link, error) {
	for before := int64(1) << 62; ; {
		ordinals, err := list(ctx, c, value[int64], targetsOf, accountID, key.URL, before, reusablePage)
		if err == nil && len(ordinals) == 0 {
			err = ErrNoRow
		}
		if err != nil {
			return schema.Link{}, err
		}
		page, err := list(ctx, c, linkFields, reusableLinks, accountID, ordinals, key.URL, key.DomainID, at)
		if err != nil {
			return schema.Link{}, err
		}
		for _, link := range page {
			if link.Redirects() && match(link) {
				return link, nil
			}
		}
		before = ordinals[len(ordinals)-1]
	}
}

// reuse lets existing links stand for new ones. The lock on the account keeps others from creating some meanwhile.
func (c *creation) reuse(ctx context.Context, tx Conn) error {
	if err := c.noteTargets(ctx, tx); err != nil {
		return err
	}
	for i, match := range c.batches[0].Reuse {
		if match == nil || c.links[i].err != nil {
			continue
		}
		link := c.results[i]
		found, err := reusable(ctx, tx, link.AccountID, link.ReuseKey(), link.CreatedAt, match)
		switch schema.ErrorCode(err) {
		case "":
			c.results[i], c.links[i].stand = found, i+1
		case schema.CodeNotFound:
		default:
			return err
		}
	}
	return nil
}

// noteTargets lets all links be found.
func (c *creation) noteTargets(ctx context.Context, tx Conn) error {
	for left := int64(1); c.batches[0].Reuse != nil && left > 0; {
		var b Batch
		b.noteTargets(&left, c.batches[0].AccountID, schema.MaxLinkBatch)
		if err := tx.Send(ctx, &b); err != nil {
			return err
		}
	}
	return nil
}

// reuseEarlier lets earlier links of the batch stand for later ones.
func (c *creation) reuseEarlier() {
	for i, match := range c.batches[0].Reuse {
		l := &c.links[i]
		taken := errors.Is(l.err, schema.ErrHashTaken) || errors.Is(l.err, schema.ErrExternalIDTaken) // by the earlier link
		if match == nil || l.stand != 0 || l.err != nil && !taken {
			continue
		}
		for n := i - 1; n >= 0; n-- {
			earlier := &c.links[n]
			if earlier.err == nil && earlier.stand == 0 && earlier.Active && earlier.PasswordHash == "" &&
				earlier.ReuseKey() == l.ReuseKey() && match(*earlier.Link) {
				l.err, l.stand = nil, n+1
				break
			}
		}
	}
}

// standIn makes the links that stand for others the results.
func (c *creation) standIn() {
	b := c.batches[0]
	if b.Reuse == nil {
		return
	}
	b.Reused = make([]bool, len(b.Reuse))
	for i := range b.Reused {
		if n := c.links[i].stand - 1; n >= 0 {
			b.Reused[i], c.results[i] = true, c.results[n]
		}
	}
}
