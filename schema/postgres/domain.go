package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

var _ schema.DomainStore = (*Links)(nil)

const (
	selectDomain = `
	SELECT id, account_id, host, challenge, created_at, coalesce(verified_at, ` + zeroTime + `) FROM domains `
	domainByID     = selectDomain + `WHERE id = $1`
	domainsByHost  = selectDomain + `WHERE host = $1 ORDER BY id`
	verifiedDomain = selectDomain + `WHERE host = $1 AND verified_at IS NOT NULL`
)

func scanDomain(row pgx.Row) (domain schema.Domain, err error) {
	err = row.Scan(&domain.ID, &domain.AccountID, &domain.Host, &domain.Challenge, &domain.CreatedAt, &domain.VerifiedAt)
	return domain, err
}

// CreateDomain implements schema.DomainStore.
func (l *Links) CreateDomain(ctx context.Context, domain *schema.Domain) error {
	err := l.pool.QueryRow(ctx, `
		INSERT INTO domains (account_id, host, challenge, created_at, verified_at)
		VALUES ($1, $2, $3, $4, $5) RETURNING id`,
		domain.AccountID, domain.Host, domain.Challenge, domain.CreatedAt, nullIfZero(domain.VerifiedAt)).Scan(&domain.ID)
	return coded(err, "create domain %q of account %d", domain.Host, domain.AccountID)
}

// Domain implements schema.DomainStore.
func (l *Links) Domain(ctx context.Context, domainID int64) (schema.Domain, error) {
	domain, err := scanDomain(l.pool.QueryRow(ctx, domainByID, domainID))
	return domain, coded(err, "read domain %d", domainID)
}

// DomainsByHost implements schema.DomainStore.
func (l *Links) DomainsByHost(ctx context.Context, host string) ([]schema.Domain, error) {
	rows, err := l.pool.Query(ctx, domainsByHost, host)
	if err != nil {
		return nil, coded(err, "read domains of host %q", host)
	}
	domains, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (schema.Domain, error) { return scanDomain(row) })
	return domains, coded(err, "read domains of host %q", host)
}

// VerifiedDomain implements schema.DomainStore.
func (l *Links) VerifiedDomain(ctx context.Context, host string) (schema.Domain, error) {
	domain, err := scanDomain(l.pool.QueryRow(ctx, verifiedDomain, host))
	return domain, coded(err, "read verified domain of host %q", host)
}

// VerifyDomain implements schema.DomainStore.
func (l *Links) VerifyDomain(ctx context.Context, domainID int64, at time.Time) error {
	err := oneRow(l.pool.Exec(ctx, `UPDATE domains SET verified_at = coalesce(verified_at, $2) WHERE id = $1`, domainID, at))
	return coded(err, "verify domain %d", domainID)
}
