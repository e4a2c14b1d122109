package sqlite

import (
	"context"
	"time"

	"linkstream/schema"
)

var _ schema.DomainStore = (*Links)(nil)

const (
	selectDomain   = `SELECT id, account_id, host, challenge, created_at, verified_at FROM domains `
	domainByID     = selectDomain + `WHERE id = ?`
	domainsByHost  = selectDomain + `WHERE host = ? ORDER BY id`
	verifiedDomain = selectDomain + `WHERE host = ? AND verified_at IS NOT NULL`
)

func scanDomain(row interface{ Scan(...any) error }) (domain schema.Domain, err error) {
	err = row.Scan(&domain.ID, &domain.AccountID, &domain.Host, &domain.Challenge, millis{&domain.CreatedAt},
		millis{&domain.VerifiedAt})
	return domain, err
}

// CreateDomain implements schema.DomainStore.
func (l *Links) CreateDomain(ctx context.Context, domain *schema.Domain) error {
	id, err := insertedID(l.db.write.ExecContext(ctx, `
		INSERT INTO domains (account_id, host, challenge, created_at, verified_at) VALUES (?, ?, ?, ?, ?)`,
		domain.AccountID, domain.Host, domain.Challenge, millis{&domain.CreatedAt}, millis{&domain.VerifiedAt}))
	if err != nil {
		return coded(err, "create domain %q of account %d", domain.Host, domain.AccountID)
	}
	domain.ID = id
	return nil
}

// Domain implements schema.DomainStore.
func (l *Links) Domain(ctx context.Context, domainID int64) (schema.Domain, error) {
	domain, err := scanDomain(l.db.read.QueryRowContext(ctx, domainByID, domainID))
	return domain, coded(err, "read domain %d", domainID)
}

// DomainsByHost implements schema.DomainStore.
func (l *Links) DomainsByHost(ctx context.Context, host string) (domains []schema.Domain, err error) {
	rows, err := l.db.read.QueryContext(ctx, domainsByHost, host)
	err = each(rows, err, func() error {
		domain, err := scanDomain(rows)
		domains = append(domains, domain)
		return err
	})
	return domains, coded(err, "read domains of host %q", host)
}

// VerifiedDomain implements schema.DomainStore.
func (l *Links) VerifiedDomain(ctx context.Context, host string) (schema.Domain, error) {
	domain, err := scanDomain(l.db.read.QueryRowContext(ctx, verifiedDomain, host))
	return domain, coded(err, "read verified domain of host %q", host)
}

// VerifyDomain implements schema.DomainStore.
func (l *Links) VerifyDomain(ctx context.Context, domainID int64, at time.Time) error {
	err := oneRow(l.db.write.ExecContext(ctx, `UPDATE domains SET verified_at = coalesce(verified_at, ?) WHERE id = ?`,
		millis{&at}, domainID))
	return coded(err, "verify domain %d", domainID)
}
