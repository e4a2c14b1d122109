package links

import (
	"context"
	"slices"
	"time"

	"linkstream/schema"
	"linkstream/schema/turns"
)

// The fields of a change of many links.
const (
	FieldAddTags    = "add_tags"
	FieldRemoveTags = "remove_tags"
)

// LinkName names a link of an account as OwnedLink does.
type LinkName struct {
	Hash     string
	DomainID *int64
	// Malformed has the problems of a name that could not be parsed, as in a Request.
	Malformed map[string][]string
}

// ChangeAll edits up to schema.MaxLinkBatch links of an account in one transaction, or deletes them if edit is nil, and
// returns what became of each in the order of the names; a Result has the link as it was before. The call is recorded
// with the changes as in CreateOnce. CodeInvalid and CodeUnsafeURL if the edit is valid for no link; what is wrong for
// one link only, such as too many tags, is that link's outcome. After an error nothing has changed, unless it is
// CodeUnavailable: then all or nothing has.
func (s *Shortener) ChangeAll(
	ctx context.Context, accountID int64, names []LinkName, edit *Edit, record *Record,
) ([]Result, error) {
	results, err := s.named(ctx, accountID, names)
	if err != nil {
		return nil, err
	}
	var places []int // of the links to change in results
	changes := &schema.LinkChanges{AccountID: accountID, At: currentTime()}
	for i := range results {
		if results[i].Err == nil {
			places, changes.IDs = append(places, i), append(changes.IDs, results[i].Link.ID)
		}
	}
	if edit != nil {
		if changes.Edit, err = s.eachEdit(ctx, accountID, *edit, changes.At); err != nil {
			return nil, err
		}
	}
	collect := func(errs []error) []Result {
		for n, i := range places {
			results[i].Err = gone(errs[n])
		}
		return results
	}
	if record != nil {
		changes.Call = &record.Call
		changes.Answer = func(errs []error) ([]byte, error) { return record.Answer(collect(errs)) }
	}
	if len(places) == 0 && record == nil {
		return results, nil
	}
	if err := s.links.ChangeLinks(ctx, changes); err != nil {
		return nil, err
	}
	return collect(changes.Errs), nil
}

// named finds links. A link that is named twice is found once.
func (s *Shortener) named(ctx context.Context, accountID int64, names []LinkName) ([]Result, error) {
	hashes := make([]string, 0, len(names))
	for _, name := range names {
		if schema.ValidHash(name.Hash) {
			hashes = append(hashes, name.Hash)
		}
	}
	links, err := s.links.OwnedLinks(ctx, accountID, hashes)
	if err != nil {
		return nil, err
	}
	byHash := map[string][]schema.Link{} // and by former hashes, in the order in which FindOwnedLink picks
	for _, link := range links {
		for _, name := range append([]string{link.Hash}, link.FormerHashes...) {
			byHash[name] = append(byHash[name], link)
		}
	}
	results, seen := make([]Result, len(names)), map[int64]bool{}
	for i, name := range names {
		at := slices.IndexFunc(byHash[name.Hash], func(link schema.Link) bool {
			return name.DomainID == nil ||
				link.DomainID == *name.DomainID
		})
		switch {
		case len(name.Malformed) > 0:
			results[i].Err = InvalidFields(name.Malformed)
		case at < 0:
			results[i].Err = NotFound()
		case seen[byHash[name.Hash][at].ID]:
			results[i].Err = InvalidFields(map[string][]string{"": {"The link is named twice."}})
		default:
			results[i].Link = byHash[name.Hash][at]
			seen[results[i].Link.ID] = true
		}
	}
	return results, nil
}

// eachEdit validates an edit and returns what it changes of each link.
func (s *Shortener) eachEdit(
	ctx context.Context, accountID int64, edit Edit, now time.Time,
) (func(schema.Link) (schema.LinkEdit, error), error) {
	if edit.Alias != nil || edit.FormerHashes != nil {
		return nil, InvalidFields(map[string][]string{FieldAlias: {"Links are renamed one by one."}})
	}
	_, password, err := s.change(ctx, schema.Link{}, edit, now)
	if err != nil {
		return nil, err
	}
	var passwordHash *string
	if password != nil {
		passwordHash = new("")
		if *password != "" {
			if *passwordHash, err = s.passwords.Hash(ctx, turns.Account(accountID), *password); err != nil {
				return nil, err
			}
		}
	}
	return func(link schema.Link) (schema.LinkEdit, error) {
		var v validation
		change := v.edit(link, edit, now, func(string, string) {}) // the URLs have been validated
		change.PasswordHash = passwordHash
		return change, v.outcome()
	}, nil
}

// ChangeByID is ChangeAll at a time for links with IDs, schema.MaxLinkBatch per transaction. It returns how many links
// have changed, also after an error, and the first error of one that has not.
func (s *Shortener) ChangeByID(
	ctx context.Context, accountID int64, ids []int64, edit *Edit, at time.Time,
) (changed int, refused, err error) {
	var each func(schema.Link) (schema.LinkEdit, error)
	if edit != nil {
		if each, err = s.eachEdit(ctx, accountID, *edit, at); err != nil {
			return 0, nil, err
		}
	}
	for some := range slices.Chunk(ids, schema.MaxLinkBatch) {
		changes := &schema.LinkChanges{AccountID: accountID, IDs: some, At: at, Edit: each}
		if err := s.links.ChangeLinks(ctx, changes); err != nil {
			return changed, refused, err
		}
		for _, err := range changes.Errs {
			switch {
			case err == nil:
				changed++
			case refused == nil:
				refused = gone(err)
			}
		}
	}
	return changed, refused, nil
}

// retag returns a link's tags, which an edit may have replaced, with some added and some removed.
func (v *validation) retag(tags []string, replaced *[]string, edit Edit) []string {
	if replaced != nil {
		tags = *replaced
	}
	for field, some := range map[string][]string{FieldAddTags: edit.AddTags, FieldRemoveTags: edit.RemoveTags} {
		for _, tag := range some {
			v.tag(field, tag)
		}
	}
	tags = slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { return slices.Contains(edit.RemoveTags, tag) })
	tags = append(tags, edit.AddTags...)
	slices.Sort(tags)
	tags = slices.Compact(tags)
	if len(tags) > schema.MaxTags {
		v.reject(FieldAddTags, "A link must have at most 10 tags.")
	}
	return tags
}
