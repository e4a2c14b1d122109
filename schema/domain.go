package schema

import (
	"context"
	"time"
)

// Domain is an account's claim on a hostname. A verified hostname belongs to one account; claims that are not
// verified may coexist.
type Domain struct {
	ID         int64 // from 1; 0 stands for the service's default domain wherever a domain is named
	AccountID  int64
	Host       string // lower case, ASCII form, no port
	Challenge  string // what the TXT record must say
	CreatedAt  time.Time
	VerifiedAt time.Time // zero until verified
}

// DomainStore keeps domains.
type DomainStore interface {
	// CreateDomain stores an account's claim and sets its ID. CodeConflict if the account claims the host already, or
	// if domain is to be stored as verified and another account holds the verified host.
	CreateDomain(ctx context.Context, domain *Domain) error
	// Domain returns the domain with that ID, verified or not. CodeNotFound if there is none.
	Domain(ctx context.Context, domainID int64) (Domain, error)
	// DomainsByHost returns every claim on host, the oldest first; none is no error.
	DomainsByHost(ctx context.Context, host string) ([]Domain, error)
	// VerifiedDomain returns the one verified domain of host. CodeNotFound if there is none.
	VerifiedDomain(ctx context.Context, host string) (Domain, error)
	// VerifyDomain marks a claim as verified. Idempotent: a verified one keeps its first time. CodeNotFound if there
	// is no such domain, CodeConflict if another account holds the verified host.
	VerifyDomain(ctx context.Context, domainID int64, at time.Time) error
	// Domains returns the account's claims, verified or not, by host.
	Domains(ctx context.Context, accountID int64) ([]Domain, error)
	// DeleteDomain ends a claim. CodeNotFound if there is no such domain, CodeConflict if a link is on it: of DeleteDomain
	// and a CreateLink on the domain at the same time, at most one succeeds.
	DeleteDomain(ctx context.Context, domainID int64) error
}
