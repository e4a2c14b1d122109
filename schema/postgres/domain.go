package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

const (
	selectDomain  = `SELECT ` + domainColumns + ` FROM domains `
	domainColumns = `id, account_id, host, challenge, created_at, coalesce(verified_at, ` + zeroTime + `),
		coalesce(lost_at, ` + zeroTime + `), coalesce(check_at, ` + zeroTime + `),
		coalesce(failing_since, ` + zeroTime + `), contested_by, coalesce(contested_at, ` + zeroTime + `),
		root_url, not_found_url, expired_url, apple_links <> '' OR android_links <> ''`
	domainByID       = selectDomain + `WHERE id = $1`
	domainsByHost    = selectDomain + `WHERE host = $1 ORDER BY id`
	verifiedDomain   = selectDomain + `WHERE host = $1 AND verified_at IS NOT NULL`
	verifiedHosts    = `SELECT host FROM domains WHERE host = ANY ($1) AND verified_at IS NOT NULL`
	verifiedDomains  = selectDomain + `WHERE id > $1 AND verified_at IS NOT NULL ORDER BY id LIMIT $2`
	domainsOfAccount = selectDomain + `WHERE account_id = $1 ORDER BY host COLLATE "C"`
	// ORDER BY makes the planner use the index of these links: if almost all links are on one domain, it could expect to find
	// a link of any domain soon in a scan of the table. Rows of deleted links stay; nothing finds them.
	deleteDomain = `
	DELETE FROM domains WHERE id = $1
		AND (SELECT ordinal FROM links WHERE domain_id = $1 AND domain_id <> 0 AND ordinal > 0 ORDER BY ordinal LIMIT 1) IS NULL`
)

func scanDomain(row pgx.Row) (domain schema.Domain, err error) {
	err = row.Scan(&domain.ID, &domain.AccountID, &domain.Host, &domain.Challenge, &domain.CreatedAt, &domain.VerifiedAt,
		&domain.LostAt, &domain.CheckAt, &domain.FailingSince, &domain.ContestedBy, &domain.ContestedAt, &domain.RootURL,
		&domain.NotFoundURL, &domain.ExpiredURL, &domain.HasAppLinks)
	return domain, err
}

// CreateDomain implements schema.DomainStore.
func (s *Store) CreateDomain(ctx context.Context, domain *schema.Domain) error {
	err := s.pool.QueryRow(ctx, `
		INSERT INTO domains (account_id, host, challenge, created_at, verified_at, check_at)
		VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`,
		domain.AccountID, domain.Host, domain.Challenge, domain.CreatedAt, nullIfZero(domain.VerifiedAt),
		nullIfZero(domain.CheckAt)).Scan(&domain.ID)
	return wrap(err, "create domain %q of account %d", domain.Host, domain.AccountID)
}

// Domain implements schema.DomainStore.
func (s *Store) Domain(ctx context.Context, domainID int64) (schema.Domain, error) {
	domain, err := scanDomain(s.pool.QueryRow(ctx, domainByID, domainID))
	return domain, wrap(err, "read domain %d", domainID)
}

// DomainsByHost implements schema.DomainStore.
func (s *Store) DomainsByHost(ctx context.Context, host string) ([]schema.Domain, error) {
	domains, err := s.domains(ctx, domainsByHost, host)
	return domains, wrap(err, "read domains of host %q", host)
}

// VerifiedDomain implements schema.DomainStore.
func (s *Store) VerifiedDomain(ctx context.Context, host string) (schema.Domain, error) {
	domain, err := scanDomain(s.pool.QueryRow(ctx, verifiedDomain, host))
	return domain, wrap(err, "read verified domain of host %q", host)
}

// VerifiedHosts implements schema.DomainStore.
func (s *Store) VerifiedHosts(ctx context.Context, hosts []string) (verified []string, err error) {
	rows, err := s.pool.Query(ctx, verifiedHosts, hosts)
	if err == nil {
		verified, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	return verified, wrap(err, "read which of %d hosts are verified", len(hosts))
}

// VerifiedDomains implements schema.DomainStore.
func (s *Store) VerifiedDomains(ctx context.Context, after int64, limit int) ([]schema.Domain, error) {
	domains, err := s.domains(ctx, verifiedDomains, after, limit)
	return domains, wrap(err, "read verified domains")
}

// VerifyDomain implements schema.DomainStore.
func (s *Store) VerifyDomain(ctx context.Context, domainID int64, at time.Time) error {
	err := oneRow(s.pool.Exec(ctx, `
		UPDATE domains SET verified_at = coalesce(verified_at, $2), lost_at = NULL WHERE id = $1`, domainID, at))
	return wrap(err, "verify domain %d", domainID)
}

// Domains implements schema.DomainStore.
func (s *Store) Domains(ctx context.Context, accountID int64) ([]schema.Domain, error) {
	domains, err := s.domains(ctx, domainsOfAccount, accountID)
	return domains, wrap(err, "read domains of account %d", accountID)
}

func (s *Store) domains(ctx context.Context, query string, args ...any) ([]schema.Domain, error) {
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (schema.Domain, error) { return scanDomain(row) })
}

// DeleteDomain implements schema.DomainStore. CreateLink holds a shared lock on the domain's row until its commit. The lock
// taken here waits for the links that are being created, and the second statement has a snapshot that contains them.
func (s *Store) DeleteDomain(ctx context.Context, domainID int64) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := oneRow(tx.Exec(ctx, `SELECT FROM domains WHERE id = $1 FOR UPDATE`, domainID)); err != nil {
			return err
		}
		err := oneRow(tx.Exec(ctx, deleteDomain, domainID))
		if errors.Is(err, pgx.ErrNoRows) {
			return schema.Errorf(schema.CodeConflict, "the domain has links")
		}
		return err
	})
	return wrap(err, "delete domain %d", domainID)
}

// SetSite implements schema.DomainStore.
func (s *Store) SetSite(ctx context.Context, domainID int64, site schema.Site, links schema.AppLinks) error {
	err := oneRow(s.pool.Exec(ctx, `
		UPDATE domains SET root_url = $2, not_found_url = $3, expired_url = $4, apple_links = $5, android_links = $6 WHERE id = $1`,
		domainID, site.RootURL, site.NotFoundURL, site.ExpiredURL, links.Apple, links.Android))
	return wrap(err, "set site of domain %d", domainID)
}

// AppLinks implements schema.DomainStore.
func (s *Store) AppLinks(ctx context.Context, domainID int64) (links schema.AppLinks, err error) {
	err = s.pool.QueryRow(ctx, `SELECT apple_links, android_links FROM domains WHERE id = $1`, domainID).
		Scan(&links.Apple, &links.Android)
	return links, wrap(err, "read app links of domain %d", domainID)
}
