package linkstore

import (
	"context"
	"time"

	"linkstream/schema"
)

const (
	insertDomain = `
	INSERT INTO domains (account_id, host, challenge, created_at, verified_at, check_at)
	VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`
	domainColumns = `id, account_id, host, challenge, created_at, verified_at, lost_at, check_at, failing_since,
		contested_by, contested_at, root_url, not_found_url, expired_url, path_mode, name, color,
		apple_links <> '' OR android_links <> ''`
	selectDomain     = `SELECT ` + domainColumns + ` FROM domains `
	domainByID       = selectDomain + `WHERE id = $1`
	domainsByHost    = selectDomain + `WHERE host = $1 ORDER BY id`
	verifiedDomain   = selectDomain + `WHERE host = $1 AND verified_at IS NOT NULL`
	verifiedHosts    = `SELECT host FROM domains WHERE host {in: $1} AND verified_at IS NOT NULL`
	verifiedDomains  = selectDomain + `WHERE id > $1 AND verified_at IS NOT NULL ORDER BY id LIMIT $2`
	domainsOfAccount = selectDomain + `WHERE account_id = $1 ORDER BY host{binary}`
	verifyDomain     = `
	UPDATE domains SET verified_at = coalesce(verified_at, $2), changed_after = ` + nowVerified + `, lost_at = NULL
	WHERE id = $1`
	// nowVerified is the changed_after of a domain that becomes verified, unless it is.
	nowVerified = `CASE WHEN verified_at IS NULL THEN 0 ELSE changed_after END`
	setSite     = `
	UPDATE domains SET root_url = $2, not_found_url = $3, expired_url = $4, apple_links = $5, android_links = $6,
		path_mode = $7, name = $8, color = $9
	WHERE id = $1`
	appLinks      = `SELECT apple_links, android_links FROM domains WHERE id = $1`
	ownerOfDomain = `SELECT account_id FROM domains WHERE id = $1`
	deleteDomain  = `DELETE FROM domains WHERE id = $1`
	// linkOnDomain has ORDER BY so that Postgres uses the index of these links: if almost all links are on one domain, its
	// planner could expect to find a link of any domain soon in a scan of the table. Rows of deleted links do not count.
	linkOnDomain = `SELECT id FROM links WHERE domain_id = $1 AND domain_id <> 0 AND ordinal > 0 ORDER BY ordinal LIMIT 1`
)

func domainFields(d *schema.Domain) []any {
	return []any{&d.ID, &d.AccountID, &d.Host, &d.Challenge, &d.CreatedAt, &d.VerifiedAt, &d.LostAt, &d.CheckAt,
		&d.FailingSince, &d.ContestedBy, &d.ContestedAt, &d.RootURL, &d.NotFoundURL, &d.ExpiredURL, &d.PathMode,
		&d.Name, &d.Color, &d.HasAppLinks}
}

// CreateDomain implements schema.DomainStore.
func (s *Store) CreateDomain(ctx context.Context, d *schema.Domain) error {
	err := write(ctx, s.db, value(&d.ID), insertDomain, d.AccountID, d.Host, d.Challenge, d.CreatedAt, d.VerifiedAt,
		d.CheckAt)
	return wrap(err, "create domain %q of account %d", d.Host, d.AccountID)
}

// Domain implements schema.DomainStore.
func (s *Store) Domain(ctx context.Context, domainID int64) (domain schema.Domain, err error) {
	err = get(ctx, s.db, domainFields(&domain), domainByID, domainID)
	return domain, wrap(err, "read domain %d", domainID)
}

// DomainsByHost implements schema.DomainStore.
func (s *Store) DomainsByHost(ctx context.Context, host string) ([]schema.Domain, error) {
	domains, err := list(ctx, s.db, domainFields, domainsByHost, host)
	return domains, wrap(err, "read domains of host %q", host)
}

// VerifiedDomain implements schema.DomainStore.
func (s *Store) VerifiedDomain(ctx context.Context, host string) (domain schema.Domain, err error) {
	err = get(ctx, s.db, domainFields(&domain), verifiedDomain, host)
	return domain, wrap(err, "read verified domain of host %q", host)
}

// VerifiedHosts implements schema.DomainStore.
func (s *Store) VerifiedHosts(ctx context.Context, hosts []string) ([]string, error) {
	verified, err := list(ctx, s.db, value[string], verifiedHosts, hosts)
	return verified, wrap(err, "read which of %d hosts are verified", len(hosts))
}

// VerifiedDomains implements schema.DomainStore.
func (s *Store) VerifiedDomains(ctx context.Context, after int64, limit int) ([]schema.Domain, error) {
	domains, err := list(ctx, s.db, domainFields, verifiedDomains, after, limit)
	return domains, wrap(err, "read verified domains")
}

// VerifyDomain implements schema.DomainStore.
func (s *Store) VerifyDomain(ctx context.Context, domainID int64, at time.Time) error {
	return wrap(execOne(ctx, s.db, verifyDomain, domainID, at), "verify domain %d", domainID)
}

// Domains implements schema.DomainStore.
func (s *Store) Domains(ctx context.Context, accountID int64) ([]schema.Domain, error) {
	domains, err := list(ctx, s.db, domainFields, domainsOfAccount, accountID)
	return domains, wrap(err, "read domains of account %d", accountID)
}

// DeleteDomain implements schema.DomainStore. Transactions that create links lock the domain's row until their commit:
// the deletion waits for them, and the statement after it finds their links.
func (s *Store) DeleteDomain(ctx context.Context, domainID int64) error {
	err := s.updateInTurnOf(ctx, ownerOfDomain, domainID, func(tx Conn, _ int64) error {
		if err := execOne(ctx, tx, deleteDomain, domainID); err != nil {
			return err
		}
		switch err := get(ctx, tx, value(new(int64)), linkOnDomain, domainID); {
		case err == nil:
			return schema.Errorf(schema.CodeConflict, "the domain has links")
		case schema.ErrorCode(err) != schema.CodeNotFound:
			return err
		}
		return nil
	})
	return wrap(err, "delete domain %d", domainID)
}

// SetSite implements schema.DomainStore.
func (s *Store) SetSite(ctx context.Context, domainID int64, site schema.Site, links schema.AppLinks) error {
	err := execOne(ctx, s.db, setSite, domainID, site.RootURL, site.NotFoundURL, site.ExpiredURL, links.Apple,
		links.Android, site.PathMode, site.Name, site.Color)
	return wrap(err, "set site of domain %d", domainID)
}

// AppLinks implements schema.DomainStore.
func (s *Store) AppLinks(ctx context.Context, domainID int64) (links schema.AppLinks, err error) {
	err = get(ctx, s.db, []any{&links.Apple, &links.Android}, appLinks, domainID)
	return links, wrap(err, "read app links of domain %d", domainID)
}
