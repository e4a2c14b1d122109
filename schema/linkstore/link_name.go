package linkstore

import (
	"slices"
	"time"

	"linkstream/schema"
)

const (
	// byName says that row n of links is a name of link l.
	byName = `l.id = coalesce(n.former_of, n.id)`
	// holderOf is the ID of the link that has the name $2 on the domain $1.
	holderOf = `(SELECT coalesce(former_of, id) FROM links WHERE domain_id = $1 AND hash = $2)`
	// formerOf begins the list of the former hashes of links l.
	formerOf = `SELECT word.value FROM links l CROSS JOIN {words: l.former_hashes} WHERE `

	// holdNames locks a link that has these names, and otherwise changes no row. A link that the operator has taken down
	// keeps its names: otherwise its owner could use them for another link.
	holdNames = `
	UPDATE links SET version = version
	WHERE id = $2 AND +account_id = $1 AND +ordinal > 0 AND hash = $3 AND former_hashes = $4 AND NOT taken_down`
	dropNames = `DELETE FROM links WHERE domain_id = $1 AND hash {in: $2} AND former_of = $3`
	// addName adds a row with an ordinal below the ordinals of all deleted links.
	addName = `
	INSERT INTO links (account_id, domain_id, hash, url, active, ordinal, created_at, former_of)
	SELECT CAST($1 AS bigint), CAST($2 AS bigint), CAST($3 AS text), '', false,
		{least}(coalesce(min(ordinal), 0), -4503599627370496) - 1, {now}, CAST($4 AS bigint)
	FROM links WHERE account_id = $1`
	renameWebhooks = `UPDATE webhooks SET hash = $4 WHERE account_id = $1 AND domain_id = $2 AND hash = $3`
	renameShares   = `UPDATE shares SET hash = $3 WHERE account_id = $1 AND link_id = $2`

	// deletedName is the row of a name that belongs to a deleted link of account $3, and, unless $4 is true, was not taken
	// down.
	deletedName = `domain_id = $1 AND hash = $2 AND +account_id = $3 AND +ordinal < 0 AND ($4 OR NOT taken_down)
		AND (former_of IS NULL OR EXISTS (SELECT 1 FROM links d WHERE d.id = links.former_of AND d.ordinal < 0))`
	// keepNames reserves the other names of a deleted link that loses its row.
	keepNames = `
	UPDATE links SET former_of = NULL WHERE domain_id = $1 AND former_of IS NOT NULL AND hash {among}` +
		formerOf + `l.id = (SELECT id FROM links WHERE ` + deletedName + `){end}`
	// unlistName takes a former hash from a deleted link.
	unlistName = `
	UPDATE links SET former_hashes = trim(replace(' ' || former_hashes || ' ', ' ' || $2 || ' ', ' '))
	WHERE id = (SELECT former_of FROM links WHERE ` + deletedName + `)`
	dropDeleted = `DELETE FROM links WHERE ` + deletedName + ` RETURNING taken_down`

	// setTakenDown is a change for ChangedLinks.
	setTakenDown = `
	UPDATE links SET numbered = CASE WHEN taken_down = $3 THEN numbered ELSE 0 END, taken_down = $3
	WHERE id = ` + holderOf
	setNamesTakenDown = `
	UPDATE links SET taken_down = $3
	WHERE domain_id = $1 AND former_of = ` + holderOf + ` AND hash {among}` + formerOf + `l.id = ` + holderOf + `{end}`
)

// freeDeleted adds the statements that free a name of a deleted link of an account, for another one of its links. If
// the operator has taken the deleted link down, only a takenDown that is not nil, which becomes true, frees the name.
func (b *Batch) freeDeleted(accountID int64, name schema.LinkKey, takenDown *bool) {
	args := []any{name.DomainID, name.Hash, accountID, takenDown != nil}
	b.exec(keepNames, args...)
	b.exec(unlistName, args...)
	if takenDown != nil {
		b.get(value(takenDown), dropDeleted, args...)
	} else {
		b.exec(dropDeleted, args...)
	}
}

// rename adds the statements of an edit with names. The outcome is CodeNotFound if the link has not the names, the
// version or the behaviour of link any more, and CodeConflict if the new hash is in use.
func (b *Batch) rename(link *schema.Link, edit schema.LinkEdit, at time.Time) {
	was, names := link.FormerHashes, *edit.Names
	b.get(value(new(int64)), lockAccount, link.AccountID)
	b.execOne(holdNames, link.AccountID, link.ID, link.Hash, schema.TagsColumn{List: &was})
	dropped := slices.DeleteFunc(slices.Clone(was), func(name string) bool { return slices.Contains(names.Former, name) })
	if len(dropped) > 0 {
		b.exec(dropNames, link.DomainID, dropped, link.ID)
	}
	for _, name := range append([]string{names.Hash}, names.Former...) {
		if name != link.Hash && !slices.Contains(was, name) {
			b.freeDeleted(link.AccountID, schema.LinkKey{DomainID: link.DomainID, Hash: name}, nil)
		}
	}
	if names.Hash != link.Hash {
		b.exec(renameWebhooks, link.AccountID, link.DomainID, link.Hash, names.Hash)
	}
	b.execOne(renameLink, append(updateArgs(link, edit, at), names.Hash, schema.TagsColumn{List: &names.Former})...)
	for _, name := range names.Former {
		if !slices.Contains(was, name) {
			b.exec(addName, link.AccountID, link.DomainID, name, link.ID)
		}
	}
	if names.Hash != link.Hash {
		b.exec(renameShares, link.AccountID, link.ID, names.Hash)
	}
}
