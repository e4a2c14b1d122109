package links

import (
	"context"
	"time"

	"linkstream/schema"
	"linkstream/schema/turns"
)

// draft is a request under validation. newDraft checks the fields that need no store; lookUp or lookUpAll reads domains
// and hosts for the others; finish checks the rest.
type draft struct {
	req     *Request
	v       validation
	link    schema.Link
	targets []fieldTarget  // of the URLs that are valid by themselves
	space   [2]fieldTarget // of targets
}

type fieldTarget struct {
	field string
	target
}

// known is what stores know of the requests of a call.
type known struct {
	own     map[schema.Host]bool // hosts that are verified domains of this service
	domains map[int64]schema.Domain
}

func newDraft(req *Request) *draft {
	d := new(draft)
	d.begin(req, time.Now())
	return d
}

// begin is newDraft for one of many drafts.
func (d *draft) begin(req *Request, now time.Time) {
	d.req, d.v, d.targets = req, newValidation(req.Malformed), d.space[:0]
	now = now.UTC().Truncate(time.Millisecond)
	d.link = schema.Link{
		AccountID: req.AccountID, URL: req.LongURL, Active: !req.Inactive, CreatedAt: now, Title: req.Title,
		Tags:         d.v.tags(req.Tags),
		ForwardQuery: req.ForwardQuery,
		ExternalID:   req.ExternalID,
	}
	if req.ExternalID != "" {
		d.v.externalID(req.ExternalID)
	}
	if !req.CreatedAt.IsZero() {
		d.link.CreatedAt, d.link.UpdatedAt = req.CreatedAt.UTC().Truncate(time.Second), now
	}
	d.parse(FieldLongURL, req.LongURL)
	if field, alias := req.alias(); alias != nil {
		d.link.Hash = *alias
		d.v.alias(field, req)
	}
	d.v.title(req.Title)
	if req.ExpiresAt != nil {
		after := now
		if req.MayBeExpired {
			after = time.Time{}
		}
		d.link.ExpiresAt = d.v.expiry(*req.ExpiresAt, after)
	}
	if req.ExpiredURL != nil {
		d.link.ExpiredURL = *req.ExpiredURL
		d.parse(FieldExpiredURL, d.link.ExpiredURL)
	}
	if req.Reuse && given(req.Password) {
		d.v.reject(FieldPassword, "A link with a password is not reused: leave out password or reuse.")
	}
	if !req.Behaviour.isZero() || schema.HasPathPattern(req.LongURL) {
		d.link.Behaviour = d.v.extension(req.Behaviour, &req.LongURL, nil, d.parse)
	}
}

func (d *draft) parse(field, address string) {
	if to, ok := d.v.target(field, address); ok {
		d.targets = append(d.targets, fieldTarget{field, to})
	}
}

// domainID returns the ID of the domain that has to be looked up. ok is false for the default domain, and if the field
// is malformed.
func (d *draft) domainID() (id int64, ok bool) {
	if d.req.DomainID == nil || *d.req.DomainID == 0 || d.v.invalid[FieldDomainID] != nil {
		return 0, false
	}
	return *d.req.DomainID, true
}

// finish returns the error of the request: CodeInvalid, else CodeUnsafeURL, else nil. Then its link is ready.
func (s *Shortener) finish(d *draft, k known) error {
	for _, to := range d.targets {
		s.judge(to.field, to.target, s.own.contain(to.target) || k.own[to.host], &d.v)
	}
	if id, ok := d.domainID(); ok {
		domain, exists := k.domains[id]
		if !exists || domain.AccountID != d.req.AccountID || domain.VerifiedAt.IsZero() {
			d.v.reject(FieldDomainID, domainProblem)
		}
		d.link.DomainID, d.link.Host = domain.ID, domain.Host
	}
	return d.v.outcome()
}

// hashPasswords sets the password hashes of an account's drafts. Links that are created together with one password
// share its hash.
func (s *Shortener) hashPasswords(ctx context.Context, drafts []*draft) error {
	hashes := map[string]string{}
	for _, d := range drafts {
		if d.v.newPassword == nil || *d.v.newPassword == "" || d.link.PasswordHash != "" {
			continue
		}
		hash, known := hashes[*d.v.newPassword]
		if !known {
			var err error
			if hash, err = s.passwords.Hash(ctx, turns.Account(d.link.AccountID), *d.v.newPassword); err != nil {
				return err
			}
			hashes[*d.v.newPassword] = hash
		}
		d.link.PasswordHash = hash
	}
	return nil
}

// lookUp reads the domains and hosts of one request.
func (s *Shortener) lookUp(ctx context.Context, d *draft) (known, error) {
	k := known{own: map[schema.Host]bool{}, domains: map[int64]schema.Domain{}}
	for _, to := range d.targets {
		own, err := s.owns(ctx, to.target)
		if err != nil {
			return known{}, err
		}
		k.own[to.host] = own
	}
	if id, ok := d.domainID(); ok {
		domain, err := s.domains.Domain(ctx, id)
		if err == nil {
			k.domains[id] = domain
		} else if schema.ErrorCode(err) != schema.CodeNotFound {
			return known{}, err
		}
	}
	return k, nil
}

// lookUpAll reads the domains and hosts of an account's requests, by one query for all hosts and one for all domains.
func (s *Shortener) lookUpAll(ctx context.Context, accountID int64, drafts []draft) (known, error) {
	k := known{own: map[schema.Host]bool{}, domains: map[int64]schema.Domain{}}
	now := time.Now()
	onDomains := false
	asked := map[schema.Host]bool{}
	var hosts []string
	for i := range drafts {
		d := &drafts[i]
		_, onDomain := d.domainID()
		onDomains = onDomains || onDomain
		for _, to := range d.targets {
			if !asked[to.host] && !s.own.contain(to.target) && !s.foreignHosts.contains(to.host, now) {
				asked[to.host] = true
				hosts = append(hosts, string(to.host))
			}
		}
	}
	if len(hosts) > 0 {
		verified, err := s.domains.VerifiedHosts(ctx, hosts)
		if err != nil {
			return known{}, err
		}
		for _, host := range verified {
			k.own[schema.Host(host)] = true
		}
		for host := range asked {
			if !k.own[host] {
				s.foreignHosts.add(host, now)
			}
		}
	}
	if onDomains {
		domains, err := s.domains.Domains(ctx, accountID)
		if err != nil {
			return known{}, err
		}
		for _, domain := range domains {
			k.domains[domain.ID] = domain
		}
	}
	return k, nil
}
