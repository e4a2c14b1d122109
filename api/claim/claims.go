package claim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"linkstream/schema"
)

// FieldHost is the field of a claim, as its errors name it.
const FieldHost = "host"

// MaxClaims is how many hosts an account may claim.
const MaxClaims = 100

// An account may verify maxVerifications times in each verifyWindow: each costs others' name servers some work.
const (
	maxVerifications = 20
	verifyWindow     = time.Minute
)

// ErrTooOften is returned when an account has verified too often within a minute.
var ErrTooOften = schema.Errorf(schema.CodeUnavailable,
	"Domains can be verified %d times a minute. Try again in a minute.", maxVerifications)

// Store is what claims are kept in.
type Store interface {
	schema.DomainStore
	schema.AttemptStore
}

// Claims is the claims of all accounts. A claim of someone else's is CodeNotFound. The methods may be called
// concurrently.
type Claims struct {
	store    Store
	verifier *Verifier
}

// NewClaims returns the claims in store.
func NewClaims(store Store, verifier *Verifier) *Claims { return &Claims{store, verifier} }

// Add claims a host for an account. CodeInvalid, with a message for FieldHost, if it is no hostname, if it is the
// default domain, if the account claims it already, or if the account has MaxClaims. Calls at the same time may exceed
// that by a few.
func (c *Claims) Add(ctx context.Context, accountID int64, host string) (schema.Domain, error) {
	ascii, err := ParseHost(host)
	switch {
	case err != nil:
		return schema.Domain{}, invalidHost("Enter a hostname like go.example.com, without http:// and without a path.")
	case ascii == c.verifier.target:
		return schema.Domain{}, invalidHost("This is the default domain. Everybody's links may be on it.")
	}
	claims, err := c.store.Domains(ctx, accountID)
	if err != nil {
		return schema.Domain{}, err
	}
	if len(claims) >= MaxClaims {
		return schema.Domain{}, invalidHost(fmt.Sprintf("You have %d domains, and no more are possible.", len(claims)))
	}
	domain := New(accountID, ascii)
	err = c.store.CreateDomain(ctx, &domain)
	if schema.ErrorCode(err) == schema.CodeConflict {
		return schema.Domain{}, invalidHost("You have added this domain already.")
	}
	return domain, err
}

func invalidHost(problem string) error {
	fields := map[string][]string{FieldHost: {problem}}
	return &schema.Error{Code: schema.CodeInvalid, Message: "The domain cannot be added.", Fields: fields}
}

// Domain returns an account's claim.
func (c *Claims) Domain(ctx context.Context, accountID, domainID int64) (schema.Domain, error) {
	domain, err := c.store.Domain(ctx, domainID)
	if err == nil && domain.AccountID != accountID {
		err = schema.Errorf(schema.CodeNotFound, "domain %d is another account's", domainID)
	}
	if err != nil {
		return schema.Domain{}, err
	}
	return domain, nil
}

// Verify looks up what DNS says about a claim now and, if that is as expected, marks the claim as verified.
// CodeConflict if another account holds the host; ErrTooOften.
//
// A verified claim stays verified whatever DNS says later: its links have been given away, and a name server's bad day
// must not end them. Its owner is told what is missing, and can remove the claim.
func (c *Claims) Verify(ctx context.Context, accountID, domainID int64) (schema.Domain, Result, error) {
	domain, err := c.Domain(ctx, accountID, domainID)
	if err != nil {
		return domain, Result{}, err
	}
	window := time.Now().Truncate(verifyWindow)
	key := sha256.Sum256(fmt.Appendf(nil, "verify domains of account %d", accountID))
	attempts, err := c.store.CountAttempt(ctx, key, window)
	if err != nil {
		return domain, Result{}, err
	}
	if attempts > maxVerifications {
		return domain, Result{}, ErrTooOften
	}
	result, err := c.verifier.Verify(ctx, domain.Host, domain.Challenge)
	if err != nil || !result.OK() || !domain.VerifiedAt.IsZero() {
		return domain, result, err
	}
	err = c.store.VerifyDomain(ctx, domainID, time.Now().UTC())
	if schema.ErrorCode(err) == schema.CodeConflict {
		err = schema.Errorf(schema.CodeConflict, "Another account holds this domain.")
	}
	if err != nil {
		return domain, result, err
	}
	domain, err = c.store.Domain(ctx, domainID)
	return domain, result, err
}

// Remove ends a claim. CodeConflict if a link is on it.
func (c *Claims) Remove(ctx context.Context, accountID, domainID int64) error {
	if _, err := c.Domain(ctx, accountID, domainID); err != nil {
		return err
	}
	err := c.store.DeleteDomain(ctx, domainID)
	if schema.ErrorCode(err) == schema.CodeConflict {
		err = schema.Errorf(schema.CodeConflict, "There are links on this domain, so it cannot be removed.")
	}
	return err
}
