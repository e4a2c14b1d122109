package customdomain

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"linkstream/api/ratelimit"
	"linkstream/schema"
)

// FieldHost is the field of a claim, as its errors name it.
const FieldHost = "host"

// MaxPerAccount is how many hosts an account may claim.
const MaxPerAccount = 100

// verifyLimit is for an account: each verification costs others' name servers some work.
var verifyLimit = ratelimit.AttemptLimit{Purpose: "verify domains of account", PerMinute: 20, PerHour: 200}

// NotCheckedError says why no name server was asked. Message is fit for the account's owner.
type NotCheckedError struct {
	Message string
	Wait    time.Duration // until the account may ask again; 0 if that is not why
	Err     error         // the cause, for the operator; nil if there is none
}

func (e *NotCheckedError) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

func (e *NotCheckedError) Unwrap() error { return e.Err }

// Store is what claims are kept in.
type Store interface {
	schema.DomainStore
	schema.AttemptStore
}

// Manager is the claims of all accounts. Its methods may be called concurrently.
type Manager struct {
	store    Store
	attempts *ratelimit.AttemptLimiter
	verifier *Verifier
}

// NewManager returns the claims in store.
func NewManager(store Store, verifier *Verifier) *Manager {
	return &Manager{store, ratelimit.NewAttemptLimiter(store), verifier}
}

// Add claims a host for an account. CodeInvalid, with a message for FieldHost, if it is no hostname, if it is the
// default domain, if the account claims it already, or if the account has MaxPerAccount. Calls at the same time may exceed
// that by a few.
func (c *Manager) Add(ctx context.Context, accountID int64, host string) (schema.Domain, error) {
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
	if len(claims) >= MaxPerAccount {
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

// Domain returns an account's claim. CodeNotFound if there is none with that ID, or it is someone else's.
func (c *Manager) Domain(ctx context.Context, accountID, domainID int64) (schema.Domain, error) {
	domain, err := c.store.Domain(ctx, domainID)
	if err == nil && domain.AccountID != accountID {
		err = schema.Errorf(schema.CodeNotFound, "domain %d is another account's", domainID)
	}
	if err != nil {
		return schema.Domain{}, err
	}
	return domain, nil
}

// Target returns the default domain, and whether a CNAME record can lead there: not if that is an address or localhost.
func (c *Manager) Target() (host string, usable bool) { return c.verifier.Target() }

// Expected returns the records that a claim needs, not looked up.
func (c *Manager) Expected(domain schema.Domain) Result {
	return c.verifier.Expected(domain.Host, domain.Challenge)
}

// Verify looks up what DNS says about a claim now and, if that is as expected, marks the claim as verified. It returns
// the claim as it is then. CodeConflict if another account holds the host; NotCheckedError.
//
// A verified claim stays verified whatever DNS says later: its links have been given away, and a name server's bad day
// must not end them. Its owner is told what is missing, and can remove the claim.
func (c *Manager) Verify(ctx context.Context, domain schema.Domain) (schema.Domain, Result, error) {
	wait, err := c.attempts.Allow(ctx, verifyLimit, strconv.FormatInt(domain.AccountID, 10))
	if err != nil {
		return domain, c.Expected(domain), err
	}
	if wait > 0 {
		text := fmt.Sprintf("You have verified domains very often. Try again in %d seconds.", int(wait.Seconds()))
		return domain, c.Expected(domain), &NotCheckedError{Message: text, Wait: wait}
	}
	result, err := c.verifier.Verify(ctx, domain.Host, domain.Challenge)
	if err != nil || !result.OK() || !domain.VerifiedAt.IsZero() {
		return domain, result, err
	}
	err = c.store.VerifyDomain(ctx, domain.ID, time.Now().UTC())
	if schema.ErrorCode(err) == schema.CodeConflict {
		err = schema.Errorf(schema.CodeConflict, "The records are right, but another account holds this domain.")
	}
	if err != nil {
		return domain, result, err
	}
	domain, err = c.store.Domain(ctx, domain.ID)
	return domain, result, err
}

// Remove ends a claim. CodeConflict if a link is on it.
func (c *Manager) Remove(ctx context.Context, domain schema.Domain) error {
	err := c.store.DeleteDomain(ctx, domain.ID)
	if schema.ErrorCode(err) == schema.CodeConflict {
		err = schema.Errorf(schema.CodeConflict, "There are links on this domain, so it cannot be removed.")
	}
	return err
}
