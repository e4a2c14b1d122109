package schema

import (
	"context"
	"time"
)

// Domain is a custom domain of an account. Several accounts may have the same host, of which one at most is verified.
type Domain struct {
	ID         int64 // from 1; a DomainID of 0 means the service's default domain
	AccountID  int64
	Host       string // in the canonical form of type Host
	Challenge  string // the required text of the TXT record
	CreatedAt  time.Time
	VerifiedAt time.Time // zero until verified
}

// DomainStore stores domains.
type DomainStore interface {
	// CreateDomain stores a domain and sets its ID. CodeConflict if the account has the host already, or if domain is
	// verified and another account has verified the host.
	CreateDomain(ctx context.Context, domain *Domain) error
	// Domain returns the domain with that ID, whether or not it is verified. CodeNotFound if there is none.
	Domain(ctx context.Context, domainID int64) (Domain, error)
	// DomainsByHost returns the domains of all accounts with this host, oldest first, possibly none.
	DomainsByHost(ctx context.Context, host string) ([]Domain, error)
	// VerifiedDomain returns the verified domain with that host. CodeNotFound if there is none.
	VerifiedDomain(ctx context.Context, host string) (Domain, error)
	// VerifyDomain marks a domain as verified. Idempotent: a verified domain keeps its time. CodeNotFound if there is
	// no such domain, CodeConflict if another account has verified the host.
	VerifyDomain(ctx context.Context, domainID int64, at time.Time) error
	// Domains returns the domains of the account, verified or not, in order of their hosts.
	Domains(ctx context.Context, accountID int64) ([]Domain, error)
	// DeleteDomain deletes a domain. CodeNotFound if there is no such domain, CodeConflict if it has links: of
	// concurrent calls of DeleteDomain and of CreateLink on the domain, at most one succeeds.
	DeleteDomain(ctx context.Context, domainID int64) error
}
