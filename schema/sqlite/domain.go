package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"linkstream/schema"
)

const (
	selectDomain  = `SELECT ` + domainColumns + ` FROM domains `
	domainColumns = `id, account_id, host, challenge, created_at, verified_at, lost_at, check_at, failing_since,
		contested_by, contested_at,
		root_url, not_found_url, expired_url, apple_links <> '' OR android_links <> ''`
	domainByID       = selectDomain + `WHERE id = ?`
	domainsByHost    = selectDomain + `WHERE host = ? ORDER BY id`
	verifiedDomain   = selectDomain + `WHERE host = ? AND verified_at IS NOT NULL`
	verifiedHosts    = `SELECT host FROM domains WHERE host IN (SELECT value FROM json_each(?)) AND verified_at IS NOT NULL`
	verifiedDomains  = selectDomain + `WHERE id > ? AND verified_at IS NOT NULL ORDER BY id LIMIT ?`
	domainsOfAccount = selectDomain + `WHERE account_id = ? ORDER BY host`
	linkOnDomain     = `SELECT EXISTS (SELECT 1 FROM links WHERE domain_id = ? AND domain_id <> 0 AND ordinal > 0)`
)

func scanDomain(row interface{ Scan(...any) error }) (domain schema.Domain, err error) {
	err = row.Scan(&domain.ID, &domain.AccountID, &domain.Host, &domain.Challenge, unixMillis{&domain.CreatedAt},
		unixMillis{&domain.VerifiedAt}, unixMillis{&domain.LostAt}, unixMillis{&domain.CheckAt},
		unixMillis{&domain.FailingSince}, &domain.ContestedBy, unixMillis{&domain.ContestedAt}, &domain.RootURL,
		&domain.NotFoundURL, &domain.ExpiredURL, &domain.HasAppLinks)
	return domain, err
}

// CreateDomain implements schema.DomainStore.
func (s *Store) CreateDomain(ctx context.Context, domain *schema.Domain) error {
	id, err := insertedID(s.db.write.ExecContext(ctx, `
		INSERT INTO domains (account_id, host, challenge, created_at, verified_at, check_at) VALUES (?, ?, ?, ?, ?, ?)`,
		domain.AccountID, domain.Host, domain.Challenge, unixMillis{&domain.CreatedAt}, unixMillis{&domain.VerifiedAt},
		unixMillis{&domain.CheckAt}))
	if err != nil {
		return wrap(err, "create domain %q of account %d", domain.Host, domain.AccountID)
	}
	domain.ID = id
	return nil
}

// Domain implements schema.DomainStore.
func (s *Store) Domain(ctx context.Context, domainID int64) (schema.Domain, error) {
	domain, err := scanDomain(s.db.queryRow(ctx, domainByID, domainID))
	return domain, wrap(err, "read domain %d", domainID)
}

// DomainsByHost implements schema.DomainStore.
func (s *Store) DomainsByHost(ctx context.Context, host string) ([]schema.Domain, error) {
	domains, err := s.domains(ctx, domainsByHost, host)
	return domains, wrap(err, "read domains of host %q", host)
}

// VerifiedDomain implements schema.DomainStore.
func (s *Store) VerifiedDomain(ctx context.Context, host string) (schema.Domain, error) {
	domain, err := scanDomain(s.db.queryRow(ctx, verifiedDomain, host))
	return domain, wrap(err, "read verified domain of host %q", host)
}

// VerifiedHosts implements schema.DomainStore.
func (s *Store) VerifiedHosts(ctx context.Context, hosts []string) ([]string, error) {
	wanted, err := json.Marshal(hosts)
	if err != nil {
		return nil, err
	}
	verified, err := stringsOf(s.db.query(ctx, verifiedHosts, string(wanted)))
	return verified, wrap(err, "read which of %d hosts are verified", len(hosts))
}

// VerifiedDomains implements schema.DomainStore.
func (s *Store) VerifiedDomains(ctx context.Context, after int64, limit int) ([]schema.Domain, error) {
	domains, err := s.domains(ctx, verifiedDomains, after, limit)
	return domains, wrap(err, "read verified domains")
}

// VerifyDomain implements schema.DomainStore.
func (s *Store) VerifyDomain(ctx context.Context, domainID int64, at time.Time) error {
	err := oneRow(s.db.write.ExecContext(ctx, `
		UPDATE domains SET verified_at = coalesce(verified_at, ?), lost_at = NULL WHERE id = ?`, unixMillis{&at}, domainID))
	return wrap(err, "verify domain %d", domainID)
}

// Domains implements schema.DomainStore.
func (s *Store) Domains(ctx context.Context, accountID int64) ([]schema.Domain, error) {
	domains, err := s.domains(ctx, domainsOfAccount, accountID)
	return domains, wrap(err, "read domains of account %d", accountID)
}

func (s *Store) domains(ctx context.Context, query string, args ...any) ([]schema.Domain, error) {
	return scanDomains(s.db.query(ctx, query, args...))
}

// scanDomains scans all rows. Its arguments are the results of a query.
func scanDomains(rows *sql.Rows, err error) (domains []schema.Domain, _ error) {
	err = forEachRow(rows, err, func() error {
		domain, err := scanDomain(rows)
		domains = append(domains, domain)
		return err
	})
	return domains, err
}

// DeleteDomain implements schema.DomainStore. It and CreateLink hold the write lock while they read rows that the other one
// changes.
func (s *Store) DeleteDomain(ctx context.Context, domainID int64) error {
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		if err := oneRow(tx.ExecContext(ctx, `DELETE FROM domains WHERE id = ?`, domainID)); err != nil {
			return err
		}
		var used bool
		err := tx.QueryRowContext(ctx, linkOnDomain, domainID).Scan(&used)
		if err == nil && used {
			err = schema.Errorf(schema.CodeConflict, "the domain has links")
		}
		return err
	})
	return wrap(err, "delete domain %d", domainID)
}

// SetSite implements schema.DomainStore.
func (s *Store) SetSite(ctx context.Context, domainID int64, site schema.Site, links schema.AppLinks) error {
	err := oneRow(s.db.write.ExecContext(ctx, `
		UPDATE domains SET root_url = ?, not_found_url = ?, expired_url = ?, apple_links = ?, android_links = ? WHERE id = ?`,
		site.RootURL, site.NotFoundURL, site.ExpiredURL, links.Apple, links.Android, domainID))
	return wrap(err, "set site of domain %d", domainID)
}

// AppLinks implements schema.DomainStore.
func (s *Store) AppLinks(ctx context.Context, domainID int64) (links schema.AppLinks, err error) {
	err = s.db.queryRow(ctx, `SELECT apple_links, android_links FROM domains WHERE id = ?`, domainID).
		Scan(&links.Apple, &links.Android)
	return links, wrap(err, "read app links of domain %d", domainID)
}
