package links

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"linkstream/schema"
	"linkstream/schema/turns"
)

// Edit is a change of a link. A nil field stays as it is.
type Edit struct {
	LongURL, Title *string
	Alias          *string   // the new hash, see schema.AliasProblem; the link keeps the one that it had
	FormerHashes   *[]string // that the link keeps; in any order
	Tags           *[]string // in any order
	IsActive       *bool
	ExpiresAt      *time.Time // zero: never; fractions of a second are cut off
	ExpiredURL     *string    // "": none
	ForwardQuery   *bool
	Behaviour
	ExternalID *string // "": none

	AddTags, RemoveTags []string // for ChangeAll: a link keeps its other tags

	// Unchanged makes Edit return CodeConflict if the link has another version than the one that Edit is given.
	Unchanged bool
	// Malformed has the problems of fields that could not be parsed, as in a Request.
	Malformed map[string][]string
}

// FieldBody stands in validation errors for a request that changes nothing.
const FieldBody = "body"

// Edit changes a link and returns it as it is then. CodeInvalid names every invalid field, and an edit without a field
// is invalid, as is an alias in use; CodeUnsafeURL as in Create; CodeNotFound if the link was deleted meanwhile;
// CodeConflict as Edit says.
func (s *Shortener) Edit(ctx context.Context, link schema.Link, edit Edit) (schema.Link, error) {
	now := currentTime()
	var passwordHash *string
	for try := 1; ; try++ {
		change, password, err := s.change(ctx, link, edit, now)
		if err == nil && password != nil && passwordHash == nil {
			passwordHash = new("")
			if *password != "" {
				*passwordHash, err = s.passwords.Hash(ctx, turns.Account(link.AccountID), *password)
			}
		}
		if err != nil {
			return schema.Link{}, err
		}
		change.PasswordHash = passwordHash
		seen := link
		err = s.links.UpdateLink(ctx, &link, change, now)
		switch {
		case errors.Is(err, schema.ErrHashTaken):
			return schema.Link{}, InvalidFields(map[string][]string{FieldAlias: {aliasInUse}})
		case edit.Unchanged || errors.Is(err, schema.ErrExternalIDTaken),
			schema.ErrorCode(err) != schema.CodeConflict || try == maxEdits:
			return link, gone(err)
		}
		// Another edit has changed the names, or another part of the behaviour.
		again, err := s.links.LinksByID(ctx, seen.AccountID, []int64{seen.ID})
		if err == nil && len(again) == 0 {
			err = NotFound()
		}
		if err != nil {
			return schema.Link{}, err
		}
		link = again[0]
	}
}

// maxEdits bounds how often Edit begins again.
const maxEdits = 8

// change validates an edit of a link. password is the new one, "" for none, nil if it stays.
func (s *Shortener) change(
	ctx context.Context, link schema.Link, edit Edit, now time.Time,
) (change schema.LinkEdit, password *string, err error) {
	v := newValidation(edit.Malformed)
	var urls []fieldURL
	change = v.edit(link, edit, now, func(field, address string) { urls = append(urls, fieldURL{field, address}) })
	for _, u := range urls {
		if err := s.validateURL(ctx, u.field, u.address, &v); err != nil {
			return change, nil, err
		}
	}
	return change, v.newPassword, v.outcome()
}

// edit returns what an edit changes of a link, and calls eachURL for the URLs that the edit brings, which it does not
// validate.
func (v *validation) edit(
	link schema.Link, edit Edit, now time.Time, eachURL func(field, address string),
) schema.LinkEdit {
	change := schema.LinkEdit{URL: edit.LongURL, Title: edit.Title, Active: edit.IsActive, ExpiredURL: edit.ExpiredURL,
		ForwardQuery: edit.ForwardQuery, ExternalID: edit.ExternalID, Unchanged: edit.Unchanged,
		Names: v.names(link, edit)}
	if edit.LongURL != nil {
		eachURL(FieldLongURL, *edit.LongURL)
	}
	if edit.ExpiredURL != nil && *edit.ExpiredURL != "" {
		eachURL(FieldExpiredURL, *edit.ExpiredURL)
	}
	if edit.Title != nil {
		v.title(*edit.Title)
	}
	if edit.ExternalID != nil && *edit.ExternalID != "" {
		v.externalID(*edit.ExternalID)
	}
	if edit.Tags != nil {
		change.Tags = new(v.tags(*edit.Tags))
	}
	if len(edit.AddTags)+len(edit.RemoveTags) > 0 {
		change.Tags = new(v.retag(link.Tags, change.Tags, edit))
	}
	if edit.ExpiresAt != nil {
		if change.ExpiresAt = new(time.Time); !edit.ExpiresAt.IsZero() {
			*change.ExpiresAt = v.expiry(*edit.ExpiresAt, now)
		}
	}
	longURL := edit.LongURL
	if longURL != nil && *longURL == link.URL {
		longURL = nil // as a form sends it; the URL of an older link has no pattern then
	}
	hasPattern := longURL != nil && (schema.HasPathPattern(*longURL) || link.HasPattern())
	if !edit.Behaviour.isZero() || hasPattern {
		change.Behaviour = v.extension(edit.Behaviour, longURL, link.Behaviour, eachURL)
		if change.Behaviour == nil {
			change.Behaviour = new(schema.Behaviour)
		}
	}
	if change == (schema.LinkEdit{Unchanged: edit.Unchanged}) && len(v.invalid) == 0 {
		v.reject(FieldBody, "At least one field of the link is required.")
	}
	return change
}

// names returns the names that an edit gives a link, nil if they stay.
func (v *validation) names(link schema.Link, edit Edit) *schema.LinkNames {
	if edit.Alias == nil && edit.FormerHashes == nil {
		return nil
	}
	names := link.Names()
	if kept := edit.FormerHashes; kept != nil {
		for _, name := range *kept {
			if !slices.Contains(link.FormerHashes, name) {
				v.reject(FieldFormerHashes, fmt.Sprintf("%.40q is no former hash of the link.", name))
			}
		}
		names.Former = slices.DeleteFunc(slices.Clone(names.Former), func(name string) bool {
			return !slices.Contains(*kept, name)
		})
		if link.Stopped == schema.TakenDown {
			v.reject(FieldFormerHashes, namesTakenDown)
		}
	}
	if edit.Alias == nil {
		return &names
	}
	alias := *edit.Alias
	problem := schema.AliasProblem(alias, link.DomainID == 0)
	if alias == link.Hash || slices.Contains(link.FormerHashes, alias) {
		problem = "" // an older rule has allowed it
	}
	names = names.Rename(alias)
	switch {
	case problem != "":
		v.reject(FieldAlias, problem)
	case link.Stopped == schema.TakenDown:
		v.reject(FieldAlias, namesTakenDown)
	case len(names.Former) > schema.MaxFormer:
		v.reject(FieldAlias, "A link keeps at most 10 former hashes: give some up by former_hashes.")
	}
	return &names
}

// AddFormerHashes lets hashes lead to a link that was imported with them, as former ones, and returns how many cannot:
// they are invalid, in use, or too many.
func (s *Shortener) AddFormerHashes(ctx context.Context, link schema.Link, hashes []string) (left int, err error) {
	now := time.Now().UTC().Truncate(time.Second)
	for _, hash := range hashes {
		names := link.Names()
		if hash == names.Hash || slices.Contains(names.Former, hash) {
			continue
		}
		if schema.AliasProblem(hash, false) != "" || len(names.Former) == schema.MaxFormer {
			left++
			continue
		}
		names.Former = append(slices.Clone(names.Former), hash)
		switch err := s.links.UpdateLink(ctx, &link, schema.LinkEdit{Names: &names}, now); schema.ErrorCode(err) {
		case "":
		case schema.CodeConflict, schema.CodeNotFound: // it is in use, or the link has changed
			left++
		default:
			return left, err
		}
	}
	return left, nil
}

const namesTakenDown = "The operator of the service has taken the link down, so its names stay."

type fieldURL struct{ field, address string }

// Delete deletes a link of an account. Its hash stays reserved for the account. CodeNotFound if it was deleted
// meanwhile; CodeConflict if unchanged is set and the link has changed since it was read.
func (s *Shortener) Delete(ctx context.Context, link schema.Link, unchanged bool) error {
	remove := s.links.DeleteLink
	if unchanged {
		remove = s.links.DeleteUnchanged
	}
	return gone(remove(ctx, link, currentTime()))
}

// Revision names the state of a link among all states of all links of its account. It changes with the link's version
// when the link is stopped, and with the mode of its domain, and not with clicks.
func Revision(link schema.Link) string {
	return fmt.Sprintf("%d-%d%s%s", link.Ordinal, link.Version, link.Stopped, link.DomainPathMode)
}

// gone gives the error of a link that was deleted meanwhile, or that cannot have its external ID, a message.
func gone(err error) error {
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return NotFound()
	}
	if errors.Is(err, schema.ErrExternalIDTaken) {
		return externalIDTaken()
	}
	return err
}

// NotFound returns the error for a link that the account does not have.
func NotFound() error {
	return schema.ClientErrorf(schema.CodeNotFound, "You have no link with this hash.")
}

// OwnedLink returns the account's link with a hash, or an external ID after "ext:": on a domain, if domainID is not
// nil, otherwise on the default domain or, if there is none, the oldest. CodeNotFound if the account has no such link.
func (s *Shortener) OwnedLink(ctx context.Context, accountID int64, hash string, domainID *int64) (schema.Link, error) {
	if id, external := externalID(hash); external {
		link, err := s.externalLink(ctx, accountID, id, domainID)
		if err == nil && link.Stopped == schema.Deleted {
			err = NotFound()
		}
		return link, gone(err)
	}
	if !schema.ValidHash(hash) {
		return schema.Link{}, NotFound()
	}
	link, err := schema.FindOwnedLink(ctx, s.links, accountID, hash, domainID)
	return link, gone(err)
}
