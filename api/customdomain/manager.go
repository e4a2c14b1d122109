// Package customdomain adds, verifies and removes the custom domains of accounts. An account may add any host; the
// domain counts once DNS holds two records, one of them the proof that the account controls the host:
//
//	go.example.com.              CNAME  the default domain
//	_linkstream.go.example.com.  TXT    "linkstream-verification=…", the challenge of this account
//
// A domain without a label in front, the apex of its zone, leads to the addresses of the default domain instead
// (Alias).
//
// Several accounts may add the same host. Each claim has its own challenge, and at most one claim is verified. Its
// records are looked up once a day. While they are missing the domain stays verified, for its links are in use, and the
// owner is warned; but another account that proves its own claim gets the host after a grace period.
package customdomain

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"linkstream/api/ratelimit"
	"linkstream/schema"
)

// FieldHost is the name of the host in validation errors.
const FieldHost = "host"

// MaxPerAccount is the largest number of domains of one account, verified or not.
const MaxPerAccount = 100

const challengePrefix = "linkstream-verification="

// verifyLimit is per account, because each verification costs other people's name servers some work.
var verifyLimit = ratelimit.AttemptLimit{Purpose: "verify domains of account", PerMinute: 20, PerHour: 200}

// NotCheckedError says why DNS was not asked. Message is fit for the account's owner.
type NotCheckedError struct {
	Message string
	Wait    time.Duration // until the account may verify again; 0 if the reason is another one
	Err     error         // the cause, for the operator; may be nil
}

func (e *NotCheckedError) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

func (e *NotCheckedError) Unwrap() error { return e.Err }

// Store keeps domains, and the counts of verifications.
type Store interface {
	schema.DomainStore
	schema.AttemptStore
}

// Manager manages the domains of all accounts. Its methods may be called concurrently.
type Manager struct {
	store    Store
	attempts *ratelimit.AttemptLimiter
	verifier *Verifier
	log      *slog.Logger
	now      func() time.Time
}

// NewManager returns a manager of the domains in store.
func NewManager(store Store, verifier *Verifier) *Manager {
	return &Manager{store: store, attempts: ratelimit.NewAttemptLimiter(store, nil), verifier: verifier, log: verifier.log,
		now: func() time.Time { return time.Now().UTC() }}
}

// New returns a domain to store: unverified, with a random challenge. host comes from ParseHost.
func New(accountID int64, host string) schema.Domain {
	return schema.Domain{
		AccountID: accountID, Host: host, Challenge: challengePrefix + rand.Text(), CreatedAt: time.Now().UTC(),
	}
}

// Add stores an unverified domain of an account. CodeInvalid, with a message for FieldHost, if host is not a hostname
// or is the default domain, if the account has the domain already, or if it has MaxPerAccount domains. Concurrent calls
// may exceed that number by a few.
func (m *Manager) Add(ctx context.Context, accountID int64, host string) (schema.Domain, error) {
	ascii, err := ParseHost(host)
	switch {
	case err != nil:
		return schema.Domain{}, invalidHost("Enter a hostname like go.example.com, without http:// and without a path.")
	case ascii == m.verifier.target:
		return schema.Domain{}, invalidHost("This is the default domain, which is open to everybody's links already.")
	}
	domains, err := m.store.Domains(ctx, accountID)
	if err != nil {
		return schema.Domain{}, err
	}
	if len(domains) >= MaxPerAccount {
		return schema.Domain{}, invalidHost(fmt.Sprintf("You have %d domains, which is the limit.", len(domains)))
	}
	domain := New(accountID, ascii)
	err = m.store.CreateDomain(ctx, &domain)
	if schema.ErrorCode(err) == schema.CodeConflict {
		return schema.Domain{}, invalidHost("You have added this domain already.")
	}
	return domain, err
}

func invalidHost(problem string) error {
	fields := map[string][]string{FieldHost: {problem}}
	return &schema.Error{Code: schema.CodeInvalid, Message: "The domain cannot be added.", Fields: fields}
}

// Domain returns a domain of the account. CodeNotFound if there is no such domain, or another account has it.
func (m *Manager) Domain(ctx context.Context, accountID, domainID int64) (schema.Domain, error) {
	domain, err := m.store.Domain(ctx, domainID)
	if err == nil && domain.AccountID != accountID {
		err = schema.Errorf(schema.CodeNotFound, "domain %d belongs to another account", domainID)
	}
	if err != nil {
		return schema.Domain{}, err
	}
	return domain, nil
}

// Target is Verifier.Target.
func (m *Manager) Target() (host string, usable bool) { return m.verifier.Target() }

// Expected returns the records that the domain needs, without looking them up: see Verifier.Expected.
func (m *Manager) Expected(ctx context.Context, domain schema.Domain) Result {
	return m.verifier.Expected(ctx, domain.Host, domain.Challenge)
}

// Verify looks up the domain's records and, if both are right, marks the domain as verified. It returns the domain as
// it is then. CodeConflict, with a message, if another account has verified the host: if the records of that account
// are gone, this begins or ends the grace period. NotCheckedError if DNS was not asked. A verified domain stays
// verified.
func (m *Manager) Verify(ctx context.Context, domain schema.Domain) (schema.Domain, Result, error) {
	wait, err := m.attempts.Allow(ctx, verifyLimit.By(strconv.FormatInt(domain.AccountID, 10)))
	if err != nil {
		return domain, m.Expected(ctx, domain), err
	}
	if wait > 0 {
		text := fmt.Sprintf("You have verified domains too often. Try again in %v.", wait.Round(time.Second))
		return domain, m.Expected(ctx, domain), &NotCheckedError{Message: text, Wait: wait}
	}
	result, err := m.verifier.Verify(ctx, domain.Host, domain.Challenge)
	switch {
	case err != nil:
	case !domain.VerifiedAt.IsZero():
		domain, err = m.note(ctx, domain, result)
	case result.OK():
		domain, err = m.verify(ctx, domain)
	}
	return domain, result, err
}

// verify marks a domain whose records are correct as verified, or contests the domain of another account.
func (m *Manager) verify(ctx context.Context, domain schema.Domain) (schema.Domain, error) {
	now := m.now()
	err := m.store.VerifyDomain(ctx, domain.ID, now)
	if schema.ErrorCode(err) == schema.CodeConflict {
		return m.contest(ctx, domain)
	}
	if err == nil {
		err = m.store.NoteDomainCheck(ctx, domain.ID, time.Time{}, now.Add(checkEvery))
	}
	if err != nil {
		return domain, err
	}
	return m.store.Domain(ctx, domain.ID)
}

// Remove deletes a domain. CodeConflict if it has links.
func (m *Manager) Remove(ctx context.Context, domain schema.Domain) error {
	err := m.store.DeleteDomain(ctx, domain.ID)
	if schema.ErrorCode(err) == schema.CodeConflict {
		err = schema.ClientErrorf(schema.CodeConflict, "This domain has links, so it cannot be removed.")
	}
	return err
}
