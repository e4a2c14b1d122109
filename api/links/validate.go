package links

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"linkstream/schema"
)

// validation collects the problems of a request.
type validation struct {
	invalid map[string][]string // sentences by field
	unsafe  string              // a sentence about a URL that leads to a host on the blocklist, or ""

	newPassword *string // "": the link has none any more; nil: as before
}

// newValidation begins with the fields that the caller has found to be invalid. They are not validated again.
func newValidation(malformed map[string][]string) validation {
	return validation{invalid: maps.Clone(malformed)}
}

func (v *validation) reject(field, problem string) {
	if v.invalid == nil {
		v.invalid = map[string][]string{}
	}
	if v.invalid[field] == nil {
		v.invalid[field] = []string{problem}
	}
}

// outcome returns the error of the request: CodeInvalid, else CodeUnsafeURL, else nil.
func (v *validation) outcome() error {
	switch {
	case len(v.invalid) > 0:
		return InvalidFields(v.invalid)
	case v.unsafe != "":
		return schema.ClientErrorf(schema.CodeUnsafeURL, "%s", v.unsafe)
	}
	return nil
}

// validateURL validates a URL that visitors are sent to.
func (s *Shortener) validateURL(ctx context.Context, field, address string, v *validation) error {
	to, ok := v.target(field, address)
	if !ok {
		return nil
	}
	own, err := s.owns(ctx, to)
	if err == nil {
		s.judge(field, to, own, v)
	}
	return err
}

// target returns where a URL leads. ok is false if it is not valid.
func (v *validation) target(field, address string) (to target, ok bool) {
	if v.invalid[field] != nil {
		return target{}, false
	}
	to, problem := parseTarget(address)
	if problem != "" {
		v.rejectURL(field, problem)
	}
	return to, problem == ""
}

func (v *validation) rejectURL(field, problem string) { v.reject(field, ofURL(field, problem)) }

// ofURL returns a sentence about a long URL as one about the URL in a field.
func ofURL(field, problem string) string {
	switch field {
	case FieldLongURL:
		return problem
	case FieldExpiredURL:
		return expiredURL.Replace(problem)
	}
	return otherURL.Replace(problem)
}

var (
	expiredURL = strings.NewReplacer("A long URL", "An expired URL", "long URL", "expired URL")
	otherURL   = strings.NewReplacer("long URL", "URL")
)

// judge rejects targets that no link may lead to. own says that this service serves the host.
func (s *Shortener) judge(field string, to target, own bool, v *validation) {
	if own {
		v.rejectURL(field, "The long URL must not lead to this service itself, or to localhost.")
		return
	}
	if v.unsafe == "" && s.blocklist.Blocks(to.host) {
		v.unsafe = ofURL(field, "The long URL leads to a host that is known as unsafe.")
	}
}

func (v *validation) title(title string) {
	switch {
	case utf8.RuneCountInString(title) > schema.MaxTitleLen:
		v.reject(FieldTitle, "The title must have at most 200 characters.")
	case strings.ContainsFunc(title, func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) }):
		v.reject(FieldTitle, "The title must be valid UTF-8 without control characters.")
	}
}

// tags returns the tags in the order in which they are stored.
func (v *validation) tags(given []string) []string {
	if len(given) == 0 {
		return nil
	}
	tags := slices.Sorted(slices.Values(given))
	invalid := slices.IndexFunc(tags, func(tag string) bool { return !schema.ValidTag(tag) })
	switch {
	case len(tags) > schema.MaxTags:
		v.reject(FieldTags, "A link must have at most 10 tags.")
	case invalid >= 0:
		v.reject(FieldTags, fmt.Sprintf("Each tag must have 1 to 32 characters of a-z, 0-9, _ and -, unlike %.40q.",
			tags[invalid]))
	case len(slices.Compact(slices.Clone(tags))) < len(tags):
		v.reject(FieldTags, "Each tag must occur once.")
	}
	return tags
}

// maxExpiry is the end of the years that ISO 8601 writes with four digits.
var maxExpiry = time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)

// expiry returns the time of expiry as it is stored.
func (v *validation) expiry(at, after time.Time) time.Time {
	at, problem := Expiry(at, after)
	if problem != "" {
		v.reject(FieldExpiresAt, problem)
	}
	return at
}

// Expiry returns a time of expiry in its stored form, and the problem of a time that is not after another one, or "".
func Expiry(at, after time.Time) (stored time.Time, problem string) {
	at = at.UTC().Truncate(time.Second)
	if !at.After(after) || at.After(maxExpiry) {
		return at, "The time of expiry must be in the future, before the year 9999 ends."
	}
	return at, ""
}

// owns reports whether the target is this service, or a custom domain of it.
func (s *Shortener) owns(ctx context.Context, to target) (bool, error) {
	if s.own.contain(to) {
		return true, nil
	}
	now := time.Now()
	if s.foreignHosts.contains(to.host, now) {
		return false, nil
	}
	_, err := s.domains.VerifiedDomain(ctx, string(to.host))
	if schema.ErrorCode(err) == schema.CodeNotFound {
		s.foreignHosts.add(to.host, now)
		return false, nil
	}
	return err == nil, err
}

// domainProblem is the same in all cases, so that it does not reveal domains of other accounts.
const domainProblem = "The domain must be a verified domain of yours."

// alias returns the alias of a request, nil if it has none, and the field in which it stands.
func (req *Request) alias() (field string, alias *string) {
	if req.Alias != nil {
		return FieldAlias, req.Alias
	}
	return FieldCustomAlias, req.CustomAlias
}

// alias validates the alias of a request, which stands in a field.
func (v *validation) alias(field string, req *Request) {
	problem := ""
	switch {
	case req.Alias != nil && req.CustomAlias != nil:
		problem = "A link has one alias: alias stands instead of custom_alias."
	case req.Alias != nil:
		problem = schema.AliasProblem(*req.Alias, req.DomainID == nil || *req.DomainID == 0)
	case req.KeepHash:
		problem = schema.AliasProblem(*req.CustomAlias, false) // of any length: it may be in print
	case !schema.ValidCustomAlias(*req.CustomAlias):
		problem = "The alias must have 3 to 20 characters of a-z, 0-9, _ and -."
	case schema.ReservedAlias(*req.CustomAlias):
		problem = "The alias is reserved."
	}
	if problem != "" {
		v.reject(field, problem)
	}
}

// AliasProblem returns a sentence that says why an account cannot give a link on a domain an alias, "" if it can. hash
// is a name of the link that is to be renamed, "" for a new link.
func (s *Shortener) AliasProblem(
	ctx context.Context, accountID int64, alias string, domainID int64, hash string,
) (string, error) {
	if problem := schema.AliasProblem(alias, domainID == 0); problem != "" {
		return problem, nil
	}
	found, err := s.links.LinksByHash(ctx, []schema.LinkKey{{DomainID: domainID, Hash: alias}})
	if err != nil || len(found) == 0 {
		return "", err
	}
	holder := found[0]
	own := holder.Hash == hash || slices.Contains(holder.FormerHashes, hash)
	if holder.AccountID == accountID && (own || holder.Stopped == schema.Deleted) {
		return "", nil
	}
	return aliasInUse, nil
}

// Limits of a negativeCache.
const (
	negativeTTL      = time.Second
	maxNegativeHosts = 4096
)

// negativeCache remembers for a short time that hosts are not verified domains, because accounts with many links create
// most of the links to few hosts. The price: links to a host are still accepted for negativeTTL after it is verified.
type negativeCache struct {
	mu    sync.Mutex
	until map[schema.Host]time.Time
}

func (c *negativeCache) contains(host schema.Host, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Before(c.until[host])
}

func (c *negativeCache) add(host schema.Host, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == nil || len(c.until) >= maxNegativeHosts {
		c.until = make(map[schema.Host]time.Time)
	}
	c.until[host] = asked.Add(negativeTTL)
}
