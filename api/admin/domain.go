package admin

import (
	"context"
	"crypto/rand"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"linkstream/schema"
)

func (r *runner) addDomain(ctx context.Context, args ...string) (id string, err error) {
	account, err := r.account(ctx, args[0])
	if err != nil {
		return "", err
	}
	host, err := parseHost(args[1])
	if err != nil {
		return "", err
	}
	domain := schema.Domain{
		AccountID: account.ID, Host: host, Challenge: "linkstream-verification=" + rand.Text(), CreatedAt: time.Now().UTC(),
	}
	if r.options.Verified {
		domain.VerifiedAt = domain.CreatedAt
	}
	err = r.stores.CreateDomain(ctx, &domain)
	if schema.ErrorCode(err) == schema.CodeConflict {
		err = r.claimed(ctx, account, host)
	}
	return strconv.FormatInt(domain.ID, 10), err
}

// claimed says why host cannot be claimed for account: the account has done so before, or another one holds the host.
func (r *runner) claimed(ctx context.Context, account schema.Account, host string) error {
	claims, err := r.stores.DomainsByHost(ctx, host)
	if err != nil {
		return err
	}
	for _, claim := range claims {
		if claim.AccountID == account.ID {
			return schema.Errorf(schema.CodeConflict, "the account claims %q already: domain %d", host, claim.ID)
		}
	}
	return schema.Errorf(schema.CodeConflict, "another account holds %q", host)
}

func (r *runner) verifyDomain(ctx context.Context, args ...string) (string, error) {
	host, err := parseHost(args[0])
	if err != nil {
		return "", err
	}
	claims, err := r.stores.DomainsByHost(ctx, host)
	if err != nil {
		return "", err
	}
	if len(claims) == 0 {
		return "", schema.Errorf(schema.CodeNotFound, "no account claims %q", host)
	}
	for _, claim := range claims {
		if claim.VerifiedAt.IsZero() {
			err := r.stores.VerifyDomain(ctx, claim.ID, time.Now().UTC())
			return "", because(err, schema.CodeConflict, "another account holds %q", host)
		}
	}
	return "", nil // the only claim is verified already
}

// hostname has two labels or more, each of 1 to 63 letters, digits and inner hyphens (RFC 1123, section 2.1). No
// top-level domain begins with a digit, but what browsers take for an IPv4 address does, however it is written.
var hostname = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

const maxHostLen = 253

// parseHost returns a hostname as domains have it: its ASCII form (UTS #46) in lower case, without the dot at the end.
// CodeInvalid if it is none, or an IP address, or a top-level domain itself.
func parseHost(host string) (string, error) {
	ascii, err := idna.Lookup.ToASCII(host)
	ascii = strings.TrimSuffix(ascii, ".")
	if err != nil || !utf8.ValidString(host) || len(ascii) > maxHostLen || !hostname.MatchString(ascii) {
		return "", schema.Errorf(schema.CodeInvalid, "%q is no hostname like go.example.com", host)
	}
	return ascii, nil
}
