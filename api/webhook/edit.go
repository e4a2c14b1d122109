package webhook

import (
	"context"
	"slices"
	"strconv"

	"linkstream/api/links"
	"linkstream/schema"
)

// Fields of a webhook.
const (
	FieldURL        = "url"
	FieldEvents     = "events"
	FieldHash       = "hash"
	FieldTag        = "tag"
	FieldPeopleOnly = "people_only"
)

// Messages for what cannot be done.
const (
	BadEvents = "The events must be some of domain.changed, link.clicked, link.created, link.deleted and link.updated."
	IsOff     = "The webhook is off."
	NoRoom    = "The webhook is off, or has no room for another delivery."
)

// TooMany is the message for a webhook beyond the limit.
var TooMany = "An account has at most " + strconv.Itoa(schema.MaxWebhooks) + " webhooks."

// Events returns what webhooks may subscribe to.
func Events() []string {
	return []string{schema.EventLinkClicked, schema.EventLinkCreated, schema.EventLinkUpdated, schema.EventLinkDeleted,
		schema.EventDomainChanged}
}

// Edit has the fields of a webhook that change. nil and false: it stays.
type Edit struct {
	URL        *string
	Events     *[]string
	Hash       *string // only events of this link, or of the one with an external ID after "ext:"
	DomainID   *int64  // of Hash; nil: as in links.Shortener.OwnedLink
	Tag        *string // only events of links with this tag
	AnyLink    bool    // Hash is cleared
	AnyTag     bool    // Tag is cleared
	PeopleOnly *bool
	Active     *bool
}

// Apply sets the fields of a webhook and returns the problems of those that are not valid.
func (s *Sender) Apply(
	ctx context.Context, shortener *links.Shortener, hook *schema.Webhook, edit Edit,
) (problems map[string][]string, err error) {
	problems = map[string][]string{}
	reject := func(field, problem string) { problems[field] = []string{problem} }
	if edit.URL != nil {
		hook.URL = *edit.URL
		if problem := s.CheckURL(hook.URL); problem != "" {
			reject(FieldURL, problem)
		}
	}
	if edit.Events != nil {
		hook.Events = slices.Compact(slices.Sorted(slices.Values(*edit.Events)))
		unknown := func(event string) bool { return !slices.Contains(Events(), event) }
		if len(hook.Events) == 0 || slices.ContainsFunc(hook.Events, unknown) {
			reject(FieldEvents, BadEvents)
		}
	}
	if edit.PeopleOnly != nil {
		hook.PeopleOnly = *edit.PeopleOnly
	}
	if edit.Active != nil {
		hook.Active = *edit.Active
	}
	if edit.AnyLink {
		hook.Hash, hook.DomainID = "", 0
	}
	if edit.AnyTag {
		hook.Tag = ""
	}
	if edit.Tag != nil {
		hook.Tag = *edit.Tag
		if !schema.ValidTag(hook.Tag) {
			reject(FieldTag, links.BadTag)
		}
	}
	switch {
	case edit.Hash == nil && edit.DomainID != nil:
		reject(links.FieldDomainID, "A domain id needs a hash: give both.")
	case edit.Hash != nil:
		link, err := shortener.OwnedLink(ctx, hook.AccountID, *edit.Hash, edit.DomainID)
		switch {
		case schema.ErrorCode(err) == schema.CodeNotFound:
			reject(FieldHash, "You have no such link.")
		case err != nil:
			return nil, err
		}
		hook.Hash, hook.DomainID = link.Hash, link.DomainID
	}
	if hook.Hash != "" && hook.Tag != "" {
		reject(FieldTag, "A webhook is for one link or for one tag: clear the hash or the tag.")
	}
	return problems, nil
}
