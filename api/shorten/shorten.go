// Package shorten makes links: it judges what a caller asks for, finds a hash and stores the link.
package shorten

import (
	"context"
	"fmt"
	"maps"
	"time"

	"linkstream/schema"
)

// The fields of a request, as its errors name them.
const (
	FieldLongURL     = "long_url"
	FieldCustomAlias = "custom_alias"
	FieldDomainID    = "domain_id"
)

// maxAttempts bounds the search for a free hash. Even with a billion links an automatic hash is taken once in 3500
// times, so that many in a row mean that something else is wrong.
const maxAttempts = 8

// Request asks for a link.
type Request struct {
	AccountID   int64
	LongURL     string
	CustomAlias *string // nil: an automatic hash
	DomainID    *int64  // nil: the default domain

	// Malformed says, by field, why what was given is not even of the field's type. Nothing else is said of such
	// a field.
	Malformed map[string][]string
}

// Shortener makes links. Its methods may be called concurrently.
type Shortener struct {
	base      schema.BaseURL // of short links; without a port, every port of its host is the default domain's
	links     schema.LinkStore
	domains   schema.DomainStore
	blocklist *Blocklist
	strangers strangers
}

// New returns a Shortener of links below base, the public base of short links.
func New(base schema.BaseURL, links schema.LinkStore, domains schema.DomainStore, blocklist *Blocklist) *Shortener {
	return &Shortener{base: base, links: links, domains: domains, blocklist: blocklist}
}

// ShortURL returns the address at which a link is served.
func (s *Shortener) ShortURL(link schema.Link) string { return s.base.ShortURL(link) }

// Create stores the link that is asked for and returns it. CodeInvalid names every field that is wrong, an alias that
// is in use among them; CodeUnsafeURL if that is all that is wrong. Of concurrent calls for one alias exactly one
// succeeds.
func (s *Shortener) Create(ctx context.Context, req Request) (schema.Link, error) {
	invalid := maps.Clone(req.Malformed)
	if invalid == nil {
		invalid = map[string][]string{}
	}
	to, err := s.judgeURL(ctx, req, invalid)
	if err != nil {
		return schema.Link{}, err
	}
	domain, err := s.judgeDomain(ctx, req, invalid)
	if err != nil {
		return schema.Link{}, err
	}
	judgeAlias(req, invalid)
	if len(invalid) > 0 {
		return schema.Link{}, invalidFields(invalid)
	}
	if s.blocklist.blocks(to.host) {
		return schema.Link{}, schema.Errorf(schema.CodeUnsafeURL, "The long URL leads to a host that is known as unsafe.")
	}
	link := schema.Link{
		AccountID: req.AccountID, DomainID: domain.ID, Host: domain.Host, URL: req.LongURL, Active: true,
		CreatedAt: time.Now().UTC().Truncate(time.Second), // as exact as it is shown, and so the same from every store
	}
	return s.store(ctx, link, req.CustomAlias)
}

func invalidFields(fields map[string][]string) error {
	return &schema.Error{Code: schema.CodeInvalid, Message: "The request has invalid fields.", Fields: fields}
}

func (s *Shortener) judgeURL(ctx context.Context, req Request, invalid map[string][]string) (target, error) {
	if invalid[FieldLongURL] != nil {
		return target{}, nil
	}
	to, problem := checkURL(req.LongURL)
	if problem == "" {
		own, err := s.owns(ctx, to)
		if err != nil {
			return target{}, err
		}
		if own {
			problem = "The long URL must not be a short link itself."
		}
	}
	if problem != "" {
		invalid[FieldLongURL] = []string{problem}
	}
	return to, nil
}

// owns reports whether target is served by this service: a link to a link could lead around in a circle.
func (s *Shortener) owns(ctx context.Context, to target) (bool, error) {
	if to.host == s.base.Host() && (s.base.Port() == "" || to.port == s.base.Port()) {
		return true, nil
	}
	now := time.Now()
	if s.strangers.has(to.host, now) {
		return false, nil
	}
	_, err := s.domains.VerifiedDomain(ctx, string(to.host))
	if schema.ErrorCode(err) == schema.CodeNotFound {
		s.strangers.add(to.host, now)
		return false, nil
	}
	return err == nil, err
}

// judgeDomain returns the domain that is asked for, the zero Domain for the default one.
func (s *Shortener) judgeDomain(ctx context.Context, req Request, invalid map[string][]string) (schema.Domain, error) {
	if invalid[FieldDomainID] != nil || req.DomainID == nil {
		return schema.Domain{}, nil
	}
	domain, err := s.domains.Domain(ctx, *req.DomainID)
	if err != nil && schema.ErrorCode(err) != schema.CodeNotFound {
		return schema.Domain{}, err
	}
	// One message for all, so that nobody learns which domains others have.
	if err != nil || domain.AccountID != req.AccountID || domain.VerifiedAt.IsZero() {
		invalid[FieldDomainID] = []string{"The domain must be a verified domain of yours."}
	}
	return domain, nil
}

func judgeAlias(req Request, invalid map[string][]string) {
	switch alias := req.CustomAlias; {
	case invalid[FieldCustomAlias] != nil || alias == nil:
	case !schema.ValidAlias(*alias):
		invalid[FieldCustomAlias] = []string{"The alias must have 3 to 20 characters of a-z, 0-9, _ and -."}
	case schema.ReservedAlias(*alias):
		invalid[FieldCustomAlias] = []string{"The alias is reserved."}
	}
}

// store stores link under the alias, or under the first automatic hash that is free.
func (s *Shortener) store(ctx context.Context, link schema.Link, alias *string) (schema.Link, error) {
	if alias != nil {
		link.Hash = *alias
		err := s.links.CreateLink(ctx, &link)
		if schema.ErrorCode(err) == schema.CodeConflict {
			err = invalidFields(map[string][]string{FieldCustomAlias: {"The alias is already in use on this domain."}})
		}
		return link, err
	}
	var err error
	for range maxAttempts {
		link.Hash = schema.NewHash()
		if err = s.links.CreateLink(ctx, &link); schema.ErrorCode(err) != schema.CodeConflict {
			return link, err
		}
	}
	return schema.Link{}, &schema.Error{
		Code: schema.CodeInternal, Message: fmt.Sprintf("no free hash in %d attempts", maxAttempts), Err: err,
	}
}
