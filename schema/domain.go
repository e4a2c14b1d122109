package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Domain is a custom domain of an account. Several accounts may have the same host, but it is verified for one at most.
type Domain struct {
	ID         int64 // from 1; a DomainID of 0 means the service's default domain
	AccountID  int64
	Host       string // in the canonical form of type Host
	Challenge  string // the required text of the TXT record
	CreatedAt  time.Time
	VerifiedAt time.Time // zero unless verified
	LostAt     time.Time // when the host was taken from the account; zero otherwise

	// Of a verified domain, whose records are looked up from time to time:
	CheckAt time.Time // the next look-up; zero: never, because the operator has vouched for the domain
	// the first of the failed look-ups since the records were found; zero if the last look-up found them
	FailingSince time.Time
	ContestedBy  int64     // the unverified domain with the same host that has the records instead, or 0
	ContestedAt  time.Time // since when; zero without ContestedBy

	Site
	HasAppLinks bool // whether AppLinks has a document
}

// Site is what visitors of a domain get besides its links: where they are sent if no link does, an empty URL sends them
// nowhere, and what pages look like.
type Site struct {
	RootURL     string   // instead of the front page
	NotFoundURL string   // if there is no such link
	ExpiredURL  string   // if a link has expired that has no such URL of its own
	PathMode    PathMode // of links that leave it to their domain
	Name        string   // on pages, at most MaxSiteName characters; "": the host
	Color       string   // of pages, for ParseColor; "": DefaultColor
}

// MaxSiteName is the most characters of a Site's name.
const MaxSiteName = 60

// SiteNameProblem says in a sentence for its author why a name cannot be a Site's; "" if it is valid.
func SiteNameProblem(name string) string {
	switch {
	case utf8.RuneCountInString(name) > MaxSiteName:
		return fmt.Sprintf("The name must have at most %d characters.", MaxSiteName)
	case strings.ContainsFunc(name, func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) }):
		return "The name must be valid UTF-8 without control characters."
	}
	return ""
}

// SiteLetter returns the letter of the mark of a name or host: its first letter or digit as a capital, or else its
// first character.
func SiteLetter(name string) string {
	first := strings.IndexFunc(name, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
	r, _ := utf8.DecodeRuneInString(name[max(first, 0):])
	return string(unicode.ToUpper(r))
}

// SiteColor returns the colour that a Site's is; DefaultColor for "".
func SiteColor(text string) Color {
	if c, err := ParseColor(text); err == nil {
		return c
	}
	return DefaultColor
}

// SiteColorProblem says in a sentence for its author why a text cannot be a Site's colour; "" if it is valid.
func SiteColorProblem(text string) string {
	if _, err := ParseColor(text); text == "" || err == nil {
		return ""
	}
	return "The colour must be # and six hexadecimal digits, such as " + DefaultColor.String() + "."
}

// AppLinks are the JSON documents of a domain that let apps open its links; "": none.
type AppLinks struct {
	Apple   string // universal links of iOS
	Android string // app links of Android
}

// The paths of AppLinks on a domain, and the most bytes of each.
const (
	AppleLinksPath   = "/.well-known/apple-app-site-association"
	AndroidLinksPath = "/.well-known/assetlinks.json"
	MaxAppLinks      = 128 << 10
)

// At returns the document at a path.
func (l *AppLinks) At(path string) string {
	switch path {
	case AppleLinksPath:
		return l.Apple
	case AndroidLinksPath:
		return l.Android
	}
	return ""
}

// AppLinksProblem says in a sentence for its author why a document cannot be one of AppLinks; "" if it is valid.
func AppLinksProblem(document string) string {
	switch {
	case len(document) > MaxAppLinks:
		return "The document must have at most 128 KiB."
	case document != "" && !json.Valid([]byte(document)):
		return "The document is not valid JSON."
	}
	return ""
}

// DomainStore stores domains.
type DomainStore interface {
	// CreateDomain stores a domain and sets its ID. CodeConflict if the account has the host already, or if domain is
	// verified and another account has verified the host.
	CreateDomain(ctx context.Context, domain *Domain) error
	// Domain returns the domain with that ID, whether or not it is verified. CodeNotFound without such a domain.
	Domain(ctx context.Context, domainID int64) (Domain, error)
	// DomainsByHost returns the domains of all accounts with this host, oldest first, possibly none.
	DomainsByHost(ctx context.Context, host string) ([]Domain, error)
	// VerifiedDomain returns the verified domain with that host. CodeNotFound without such a domain.
	VerifiedDomain(ctx context.Context, host string) (Domain, error)
	// VerifiedHosts returns the hosts that have a verified domain, in any order.
	VerifiedHosts(ctx context.Context, hosts []string) ([]string, error)
	// VerifiedDomains returns up to limit verified domains whose IDs are above after, in order of their IDs. Successive
	// calls, each with the last ID of the previous one, return all domains that are verified during all of them.
	VerifiedDomains(ctx context.Context, after int64, limit int) ([]Domain, error)
	// VerifyDomain marks a domain as verified. Idempotent: a verified domain keeps its time. CodeNotFound if there is
	// no such domain, CodeConflict if another account has verified the host. It is not checked until NoteDomainCheck.
	VerifyDomain(ctx context.Context, domainID int64, at time.Time) error
	// Domains returns the domains of the account, verified or not, in order of their hosts.
	Domains(ctx context.Context, accountID int64) ([]Domain, error)
	// DeleteDomain deletes a domain. CodeNotFound if there is no such domain, CodeConflict if it has links: of
	// concurrent calls of DeleteDomain and of CreateLink on the domain, at most one succeeds.
	DeleteDomain(ctx context.Context, domainID int64) error

	// SetSite sets what visitors of a domain get besides its links. CodeNotFound if there is no such domain.
	SetSite(ctx context.Context, domainID int64, site Site, links AppLinks) error
	// AppLinks returns the documents of a domain. CodeNotFound if there is no such domain.
	AppLinks(ctx context.Context, domainID int64) (AppLinks, error)

	// DomainsToCheck returns up to limit verified domains whose CheckAt is not after now, the longest due first, and sets
	// their CheckAt to again. Concurrent calls, also of other processes, return different domains.
	DomainsToCheck(ctx context.Context, now, again time.Time, limit int) ([]Domain, error)
	// NoteDomainCheck sets FailingSince and CheckAt of a verified domain. With a zero failingSince it also ends a contest.
	// CodeNotFound if there is no such verified domain.
	NoteDomainCheck(ctx context.Context, domainID int64, failingSince, checkAt time.Time) error
	// ContestDomain sets ContestedBy and ContestedAt of a verified domain whose check fails; 0 and the zero time end a
	// contest. CodeNotFound if there is no such domain, or its check does not fail.
	ContestDomain(ctx context.Context, domainID, by int64, at time.Time) error
	// TransferDomain verifies a domain, with its next check at checkAt. Another verified domain with the same host loses
	// the host at the time at. Visitors never see the host without a verified domain. Idempotent. CodeNotFound if there is
	// no such domain.
	TransferDomain(ctx context.Context, domainID int64, at, checkAt time.Time) error
	// ReleaseDomain takes the host from a verified domain, which has then been lost at the time at. CodeNotFound if there
	// is no such verified domain.
	ReleaseDomain(ctx context.Context, domainID int64, at time.Time) error
}
