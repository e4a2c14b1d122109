package links

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"linkstream/schema"
	"linkstream/schema/turns"
)

// externalID returns the external ID in the name of a link; false if the name is a hash, which has no colon.
func externalID(name string) (id string, ok bool) { return strings.CutPrefix(name, "ext:") }

// ExternalID is externalID for a name that must have one. CodeInvalid if it has no valid one.
func ExternalID(name string) (id string, ok bool, err error) {
	var v validation
	if id, ok = externalID(name); ok {
		v.externalID(id)
	}
	return id, ok, v.outcome()
}

// externalLink returns an account's link, which may be one in the trash. domainID is its domain, unless it is nil.
func (s *Shortener) externalLink(
	ctx context.Context, accountID int64, id string, domainID *int64,
) (schema.Link, error) {
	if !schema.ValidExternalID(id) {
		return schema.Link{}, NotFound()
	}
	link, err := s.links.ExternalLink(ctx, accountID, id, time.Now().Add(-schema.TrashTTL))
	if err == nil && domainID != nil && *domainID != link.DomainID {
		err = NotFound()
	}
	return link, err
}

func (v *validation) externalID(id string) {
	if !schema.ValidExternalID(id) {
		v.reject(FieldExternalID, "The external ID must have 1 to 255 visible ASCII characters.")
	}
}

func externalIDTaken() error {
	return InvalidFields(map[string][]string{FieldExternalID: {
		"Another link of yours has this external ID. It may be in the trash."}})
}

// given reports whether a request gives a part of a behaviour.
func given(text string) bool { return text != "" && text != "null" }

// reuses returns, for each draft at places, whether a link stands for it; nil if no request says Reuse.
func reuses(drafts []draft, places []int) (all []func(schema.Link) bool) {
	for n, i := range places {
		if d := &drafts[i]; d.req.Reuse {
			if all == nil {
				all = make([]func(schema.Link) bool, len(places))
			}
			all[n] = d.givesWhat
		}
	}
	return all
}

// targetsAtOnce is how many links one transaction makes known to ReusableLink.
const targetsAtOnce = 10_000

// noteTargets lets all links of an account be reused. For an account of many links that reuses one for the first time,
// it takes a while; what it has done by the end of ctx is kept.
func (s *Shortener) noteTargets(ctx context.Context, accountID int64) error {
	for {
		if left, err := s.links.NoteTargets(ctx, accountID, targetsAtOnce); err != nil || left == 0 {
			return err
		}
	}
}

// givesWhat reports whether a link has everything that the request gives beside target and domain.
func (d *draft) givesWhat(link schema.Link) bool {
	req, want, has := d.req, d.link.Behaviour, link.Behaviour
	if want == nil {
		want = new(schema.Behaviour)
	}
	if has == nil {
		has = new(schema.Behaviour)
	}
	same := func(a, b schema.Behaviour) bool { return a.Text() == b.Text() }
	_, alias := req.alias()
	return has.Pattern == want.Pattern && (alias == nil || link.Hash == *alias) &&
		(req.Title == "" || link.Title == req.Title) &&
		(req.Tags == nil || slices.Equal(link.Tags, d.link.Tags)) &&
		(req.ExpiresAt == nil || link.ExpiresAt.Equal(d.link.ExpiresAt)) &&
		(req.ExpiredURL == nil || link.ExpiredURL == *req.ExpiredURL) &&
		(!req.GivesForward || link.ForwardQuery == req.ForwardQuery) &&
		(req.ExternalID == "" || link.ExternalID == req.ExternalID) &&
		(!given(req.Rules) || same(schema.Behaviour{Rules: has.Rules}, schema.Behaviour{Rules: want.Rules})) &&
		(!given(req.Variants) || same(schema.Behaviour{Variants: has.Variants},
			schema.Behaviour{Variants: want.Variants})) &&
		(!given(req.Card) || same(schema.Behaviour{Card: has.Card}, schema.Behaviour{Card: want.Card})) &&
		(!given(req.MaxClicks) || has.MaxClicks == want.MaxClicks) &&
		(!given(req.PathMode) || has.PathMode == want.PathMode)
}

// Why Put looks at the link again: another call has changed it meanwhile, or Put has, which has more to do.
var (
	errFaster   = errors.New("another call was faster")
	errRestored = errors.New("the link was restored, and is not renamed yet")
)

// Put makes the link with req.ExternalID exactly what req describes: it changes the account's link with that ID, also
// one in the trash, or creates one. Fields that req does not give get their defaults; a link keeps its hash unless req
// gives another. permit is called with the link, nil if the account has none, before anything changes; if it returns
// true, the link is changed only as it is. Of concurrent calls for one ID one creates a link. Errors are as of Create,
// and of Edit with Unchanged.
func (s *Shortener) Put(
	ctx context.Context, req Request, permit func(*schema.Link) (unchanged bool, err error),
) (link schema.Link, created bool, err error) {
	req.Reuse = false
	d := newDraft(&req)
	k, err := s.lookUp(ctx, d)
	if err == nil {
		err = s.finish(d, k)
	}
	for err == nil {
		link, err = s.links.ExternalLink(ctx, req.AccountID, req.ExternalID, time.Now().Add(-schema.TrashTTL))
		switch created = schema.ErrorCode(err) == schema.CodeNotFound; {
		case created:
			link, err = s.putNew(ctx, d, permit)
		case err == nil:
			link, err = s.putOver(ctx, d, link, permit)
		}
		if errors.Is(err, errRestored) {
			permit = func(*schema.Link) (bool, error) { return false, nil } // it has permitted the call
		} else if !errors.Is(err, errFaster) {
			break
		}
		err = pause(ctx)
	}
	return link, created, err
}

// pause lets another call for the same link come first.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return schema.Errorf(schema.CodeUnavailable, "the link changes again and again: %w", ctx.Err())
	case <-time.After(rand.N(10 * time.Millisecond)):
		return nil
	}
}

// putNew creates the link of Put.
func (s *Shortener) putNew(
	ctx context.Context, d *draft, permit func(*schema.Link) (bool, error),
) (schema.Link, error) {
	if _, err := permit(nil); err != nil {
		return schema.Link{}, err
	}
	if err := s.hashPasswords(ctx, []*draft{d}); err != nil {
		return schema.Link{}, err
	}
	link, err := s.store(ctx, d)
	if errors.Is(err, schema.ErrExternalIDTaken) {
		return link, errFaster
	}
	if err = d.rejection(err); err != nil {
		return link, err
	}
	link, err = s.links.ExternalLink(ctx, link.AccountID, link.ExternalID, link.CreatedAt) // with what the store sets
	if schema.ErrorCode(err) == schema.CodeNotFound {
		err = errFaster
	}
	return link, err
}

// putOver changes the link of Put. A link of the trash is restored first, and gets another hash then.
func (s *Shortener) putOver(
	ctx context.Context, d *draft, link schema.Link, permit func(*schema.Link) (bool, error),
) (schema.Link, error) {
	inTrash := link.Stopped == schema.Deleted
	visible := &link
	if inTrash {
		visible = nil
	}
	unchanged, err := permit(visible)
	if err != nil {
		return link, err
	}
	if d.link.DomainID != link.DomainID {
		return link, InvalidFields(map[string][]string{FieldDomainID: {"A link stays on its domain."}})
	}
	edit, err := s.allOf(ctx, d, link)
	if err != nil {
		return link, err
	}
	renamed := edit.Alias != nil
	if edit.Unchanged = unchanged; inTrash && renamed {
		if err := s.checkFree(ctx, link, *edit.Alias); err != nil {
			return link, d.ofAlias(err)
		}
		edit.Alias = nil
	}
	now := currentTime()
	change, password, err := s.change(ctx, link, edit, now)
	switch {
	case err != nil:
		return link, d.ofAlias(err)
	case password != nil && *password != "":
		if err := s.hashPasswords(ctx, []*draft{d}); err != nil {
			return link, err
		}
		change.PasswordHash = &d.link.PasswordHash
	case !inTrash && change.Names == nil && isSo(link, change):
		return link, nil
	default:
		change.PasswordHash = password
	}
	if inTrash {
		err = s.links.RestoreAs(ctx, &link, change, now.Add(-schema.TrashTTL), now)
	} else {
		err = s.links.UpdateLink(ctx, &link, change, now)
	}
	code := schema.ErrorCode(err)
	switch {
	case errors.Is(err, schema.ErrHashTaken):
		return link, d.rejection(err)
	case err == nil && inTrash && renamed:
		return link, errRestored
	case code == schema.CodeNotFound, code == schema.CodeConflict && !unchanged:
		return link, errFaster
	}
	return link, err
}

// checkFree returns an error if another link has an alias which a link of the trash is about to get.
func (s *Shortener) checkFree(ctx context.Context, link schema.Link, alias string) error {
	found, err := s.links.LinksByHash(ctx, []schema.LinkKey{{DomainID: link.DomainID, Hash: alias}})
	for _, other := range found {
		if other.ID != link.ID && (other.AccountID != link.AccountID || other.Stopped != schema.Deleted) {
			return InvalidFields(map[string][]string{FieldAlias: {aliasInUse}})
		}
	}
	return err
}

// allOf returns the edit that gives a link everything that a request describes.
func (s *Shortener) allOf(ctx context.Context, d *draft, link schema.Link) (Edit, error) {
	req := d.req
	edit := Edit{LongURL: &req.LongURL, Title: &req.Title, Tags: &req.Tags, IsActive: new(!req.Inactive),
		ExpiresAt: new(time.Time), ExpiredURL: new(""), ForwardQuery: &req.ForwardQuery, ExternalID: &req.ExternalID,
		Behaviour: req.Behaviour}
	if req.ExpiresAt != nil {
		edit.ExpiresAt = req.ExpiresAt
	}
	if req.ExpiredURL != nil {
		edit.ExpiredURL = req.ExpiredURL
	}
	if _, alias := req.alias(); alias != nil && *alias != link.Hash {
		edit.Alias = alias
	}
	for _, part := range edit.Behaviour.parts() {
		if *part == "" {
			*part = "null"
		}
	}
	if d.v.newPassword == nil || *d.v.newPassword == "" || link.Stopped == schema.Deleted || link.Behaviour == nil {
		return edit, nil
	}
	hash, version, err := s.links.LinkPassword(ctx, link.ID)
	if err == nil && version == link.Behaviour.Password && version != 0 {
		var same bool
		same, err = s.passwords.Verify(ctx, turns.Account(link.AccountID), hash, *d.v.newPassword)
		if same {
			edit.Password = "" // as it is: visitors who have given it go on
		}
	}
	return edit, gone(err)
}

// ofAlias names the alias in an error of an edit as the request does.
func (d *draft) ofAlias(err error) error {
	var e *schema.Error
	field, _ := d.req.alias()
	if !errors.As(err, &e) || e.Fields[FieldAlias] == nil || field == FieldAlias {
		return err
	}
	fields := maps.Clone(e.Fields)
	fields[field] = fields[FieldAlias]
	delete(fields, FieldAlias)
	return InvalidFields(fields)
}

// isSo reports whether a link has all that a change of everything gives it, beside a password.
func isSo(link schema.Link, change schema.LinkEdit) bool {
	return *change.URL == link.URL && *change.Title == link.Title && slices.Equal(*change.Tags, link.Tags) &&
		*change.Active == link.Active && change.ExpiresAt.Equal(link.ExpiresAt) &&
		*change.ExpiredURL == link.ExpiredURL && *change.ForwardQuery == link.ForwardQuery &&
		change.Behaviour.Text() == link.Behaviour.Text()
}
