// Package sharing shares reports with people who have no account: it makes secret URLs and checks who may read their
// reports.
package sharing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"linkstream/api/auth"
	"linkstream/api/linkpassword"
	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/turns"
)

// Path precedes the secret in the path of a shared report.
const Path = "/dashboard/shared/"

// The names of a request's fields in validation errors.
const (
	FieldHash        = "hash"
	FieldDomainID    = links.FieldDomainID
	FieldTag         = "tag"
	FieldExpiresAt   = links.FieldExpiresAt
	FieldPassword    = links.FieldPassword
	FieldHideTargets = "hide_targets"
)

// Request describes a share to create: of the report of a link, of the links with a tag, or on a domain, or of all
// links of the account.
type Request struct {
	AccountID   int64
	Hash, Tag   *string
	DomainID    *int64     // of the link, or of the links; 0: the default domain
	ExpiresAt   *time.Time // nil: never; fractions of a second are cut off
	Password    *string    // nil: none
	HideTargets bool
	TimeZone    string // in which the owner sees the report; "": unknown
	TokenID     int64  // of the token with whose rights the report is shared; 0: none

	// Malformed holds problems that the caller has found, by field. Create reports them with its own.
	Malformed map[string][]string
}

// Store is the part of schema.Database that shares need.
type Store interface {
	schema.ShareStore
	schema.AttemptStore
	Domains(ctx context.Context, accountID int64) ([]schema.Domain, error)
}

// Shares creates shares and opens them. Its methods may be called concurrently.
type Shares struct {
	base      schema.BaseURL
	store     Store
	shortener *links.Shortener
	guard     *linkpassword.Guard
}

// New returns Shares whose URLs are below base. now is the clock of limits of passwords; nil: time.Now.
func New(base schema.BaseURL, store Store, shortener *links.Shortener, now func() time.Time) *Shares {
	return &Shares{base, store, shortener, linkpassword.NewGuard("shared report", store, shortener.Passwords(), now)}
}

// Create stores a share and returns it with its URL, which cannot be shown again. CodeInvalid names every invalid
// field; an account that has too many shares is an error of no field.
func (s *Shares) Create(ctx context.Context, req Request) (share schema.Share, url string, err error) {
	now := time.Now().UTC()
	share = schema.Share{AccountID: req.AccountID, DomainID: req.DomainID, HideTargets: req.HideTargets, CreatedAt: now,
		TimeZone: req.TimeZone, TokenID: req.TokenID}
	problems := map[string][]string{}
	if err = s.selectLinks(ctx, &share, req, problems); err != nil {
		return share, "", err
	}
	if req.ExpiresAt != nil {
		var problem string
		if share.ExpiresAt, problem = links.Expiry(*req.ExpiresAt, now); problem != "" {
			problems[FieldExpiresAt] = []string{problem}
		}
	}
	if req.Password != nil && !links.ValidPassword(*req.Password) {
		problems[FieldPassword] = []string{links.BadPassword}
	}
	if maps.Copy(problems, req.Malformed); len(problems) > 0 {
		return share, "", links.InvalidFields(problems)
	}
	if req.Password != nil {
		if share.PasswordHash, err = s.shortener.Passwords().Hash(ctx, turns.Account(req.AccountID),
			*req.Password); err != nil {
			return share, "", err
		}
	}
	var random [secretBytes]byte
	rand.Read(random[:]) // never fails, see crypto/rand
	secret := secretEncoding.EncodeToString(random[:])
	share.Digest = auth.Digest(secret)
	err = s.store.CreateShare(ctx, &share)
	if schema.ErrorCode(err) == schema.CodeConflict {
		return share, "", &schema.Error{Code: schema.CodeInvalid, Message: tooMany,
			Fields: map[string][]string{FieldHash: {tooMany}}}
	}
	return share, s.base.String() + Path + secret, err
}

var tooMany = fmt.Sprintf("An account has at most %d shared reports: delete one first.", schema.MaxShares)

// selectLinks sets which links the report is about.
func (s *Shares) selectLinks(
	ctx context.Context, share *schema.Share, req Request, problems map[string][]string,
) error {
	if req.Tag != nil {
		if share.Tag = *req.Tag; !schema.ValidTag(share.Tag) {
			problems[FieldTag] = []string{links.BadTag}
		}
	}
	if req.Hash != nil {
		if req.Tag != nil {
			problems[FieldTag] = []string{"A report is about one link, or about the links with one tag: leave out the hash or " +
				"the tag."}
		}
		link, err := s.shortener.OwnedLink(ctx, req.AccountID, *req.Hash, req.DomainID)
		if schema.ErrorCode(err) == schema.CodeNotFound {
			problems[FieldHash] = []string{"You have no such link."}
			return nil
		}
		share.LinkID, share.Hash, share.DomainID = link.ID, link.Hash, &link.DomainID
		return err
	}
	if req.DomainID == nil || *req.DomainID == 0 {
		return nil
	}
	domains, err := s.store.Domains(ctx, req.AccountID)
	if !slices.ContainsFunc(domains, func(d schema.Domain) bool { return d.ID == *req.DomainID }) {
		problems[FieldDomainID] = []string{"You have no domain with this id. The default domain has 0."}
	}
	return err
}

const secretBytes = 32

var secretEncoding = base64.RawURLEncoding.Strict()

// Credential returns the digest of a secret. It returns zero for a text that cannot be a secret.
func Credential(secret string) (digest [sha256.Size]byte) {
	if raw, err := secretEncoding.DecodeString(secret); err != nil || len(raw) != secretBytes {
		return digest
	}
	return auth.Digest(secret)
}

// Open returns the share with a secret, and its account. CodeNotFound if there is no such share, or it has ended.
func (s *Shares) Open(ctx context.Context, secret string) (schema.Share, schema.Account, error) {
	digest := Credential(secret)
	if digest == [sha256.Size]byte{} {
		return schema.Share{}, schema.Account{}, schema.Errorf(schema.CodeNotFound, "no secret of a share")
	}
	return s.store.ShareByDigest(ctx, digest, time.Now())
}

// Check returns whether a reader has given the right password, or how long the reader must wait.
func (s *Shares) Check(
	ctx context.Context, share schema.Share, client netip.Addr, password string,
) (right bool, wait time.Duration, err error) {
	return s.guard.Check(ctx, share.ID, client, password, func() (string, error) { return share.PasswordHash, nil })
}
