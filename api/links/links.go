// Package links creates, edits and deletes links and applies their rules. It validates requests, finds free
// hashes and stores the outcome.
package links

import (
	"context"
	"errors"
	"time"

	"linkstream/api/auth"
	"linkstream/api/reads"
	"linkstream/schema"
	"linkstream/schema/blocklist"
)

// The names of a request's fields in validation errors.
const (
	FieldLongURL      = "long_url"
	FieldAlias        = "alias"
	FieldCustomAlias  = "custom_alias"
	FieldFormerHashes = "former_hashes"
	FieldDomainID     = "domain_id"
	FieldTitle        = "title"
	FieldTags         = "tags"
	FieldIsActive     = "is_active"
	FieldExpiresAt    = "expires_at"
	FieldExpiredURL   = "expired_url"
	FieldForwardQuery = "forward_query"
	FieldRules        = "rules"
	FieldVariants     = "variants"
	FieldCard         = "card"
	FieldPassword     = "password"
	FieldMaxClicks    = "max_clicks"
	FieldPathMode     = "path_mode"
	FieldExternalID   = "external_id"
	FieldReuse        = "reuse"
)

// Request describes the link to create.
type Request struct {
	AccountID int64
	LongURL   string
	Alias     *string // see schema.AliasProblem
	// CustomAlias stands instead of Alias; its rules are those of schema.ValidCustomAlias. Both nil: a random hash.
	CustomAlias *string
	DomainID    *int64 // nil or 0: the default domain

	Title        string
	Tags         []string   // in any order
	ExpiresAt    *time.Time // nil: never; fractions of a second are cut off
	ExpiredURL   *string    // nil: none
	ForwardQuery bool
	Behaviour
	ExternalID string // see schema.ValidExternalID; "": none

	// Reuse lets the account's newest link that redirects and has what the request gives stand for a new one.
	Reuse        bool
	GivesForward bool // for Reuse: the request gives ForwardQuery

	// Links that come from elsewhere:
	KeepHash     bool      // CustomAlias may be what Alias may be on a custom domain
	CreatedAt    time.Time // zero: now; fractions of a second are cut off
	Inactive     bool      // the link is created as one that its owner has switched off
	MayBeExpired bool      // ExpiresAt may be in the past

	// Malformed holds problems that the caller has found, by field: values of the wrong type. Create reports them with its
	// own and does not validate these fields.
	Malformed map[string][]string
}

// Shortener creates links. Its methods may be called concurrently.
type Shortener struct {
	base         schema.BaseURL // of short links
	own          ownAddresses
	links        schema.LinkStore
	domains      schema.DomainStore
	blocklist    *blocklist.List
	foreignHosts negativeCache
	passwords    *auth.PasswordPool
	tagClicks    *reads.Results[tagRange, map[string]int64]
}

// New returns a Shortener whose links on the default domain are below base. own are more addresses of the service; no
// link may lead to one of them.
func New(
	base schema.BaseURL, links schema.LinkStore, domains schema.DomainStore, blocklist *blocklist.List, own ...Address,
) *Shortener {
	all := append(ownAddresses{AddressOf(base)}, own...)
	return &Shortener{base: base, own: all, links: links, domains: domains, blocklist: blocklist,
		passwords: auth.NewPasswordPool(), tagClicks: reads.NewResults[tagRange, map[string]int64](countLimits)}
}

// Passwords returns what computes all hashes of passwords in this process.
func (s *Shortener) Passwords() *auth.PasswordPool { return s.passwords }

// currentTime returns the time as precise as every store keeps it: it orders changes.
func currentTime() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// Base returns the base of short links on the default domain.
func (s *Shortener) Base() schema.BaseURL { return s.base }

// ShortURL returns the address at which a link is served.
func (s *Shortener) ShortURL(link schema.Link) string { return s.base.ShortURL(link) }

// Create stores a link and returns it. CodeInvalid names every invalid field; an alias that is in use counts as one.
// CodeUnsafeURL if all fields are valid but the host of the long URL or of the expired URL is on the blocklist. Of
// concurrent calls for one alias exactly one succeeds.
func (s *Shortener) Create(ctx context.Context, req Request) (schema.Link, error) {
	d := newDraft(&req)
	known, err := s.lookUp(ctx, d)
	if err != nil {
		return schema.Link{}, err
	}
	if err := s.finish(d, known); err != nil {
		return schema.Link{}, err
	}
	if err := s.hashPasswords(ctx, []*draft{d}); err != nil {
		return schema.Link{}, err
	}
	link, err := s.store(ctx, d)
	return link, d.rejection(err)
}

// InvalidFields returns an error of CodeInvalid with the problems of each field.
func InvalidFields(fields map[string][]string) error {
	return &schema.Error{Code: schema.CodeInvalid, Message: "The request has invalid fields.", Fields: fields}
}

// store stores the link of a valid draft under its alias, or under the first random hash that is free.
func (s *Shortener) store(ctx context.Context, d *draft) (schema.Link, error) {
	link := d.link
	if link.Hash != "" {
		return link, s.links.CreateLink(ctx, &link)
	}
	for range schema.MaxDraws {
		link.Hash = schema.NewHash()
		err := s.links.CreateLink(ctx, &link)
		if schema.ErrorCode(err) != schema.CodeConflict || errors.Is(err, schema.ErrExternalIDTaken) {
			return link, err
		}
	}
	return schema.Link{}, schema.ErrNoFreeHash
}

const aliasInUse = "The alias is already in use on this domain."

// rejection returns the error for a link that the store has rejected. A domain that was deleted after validation is an
// invalid field, as it was before that.
func (d *draft) rejection(err error) error {
	if errors.Is(err, schema.ErrExternalIDTaken) {
		return externalIDTaken()
	}
	switch schema.ErrorCode(err) {
	case schema.CodeConflict:
		field, _ := d.req.alias()
		return InvalidFields(map[string][]string{field: {aliasInUse}})
	case schema.CodeNotFound:
		return InvalidFields(map[string][]string{FieldDomainID: {domainProblem}})
	}
	return err
}
