package sqlite

import (
	"context"
	"database/sql"
	"time"

	"linkstream/schema"
)

const (
	domainsToCheck = `
	UPDATE domains SET check_at = ?2
	WHERE id IN (SELECT id FROM domains WHERE check_at <= ?1 ORDER BY check_at LIMIT ?3) RETURNING ` + domainColumns
	loseDomain = `
	UPDATE domains SET verified_at = NULL, check_at = NULL, failing_since = NULL, contested_by = 0, contested_at = NULL,
		lost_at = ?2 WHERE verified_at IS NOT NULL AND `
	loseHost = loseDomain + `host = (SELECT host FROM domains WHERE id = ?1) AND id <> ?1`
	winHost  = `
	UPDATE domains SET verified_at = coalesce(verified_at, ?2), check_at = ?3, failing_since = NULL, contested_by = 0,
		contested_at = NULL, lost_at = NULL WHERE id = ?1`
)

// DomainsToCheck implements schema.DomainStore.
func (s *Store) DomainsToCheck(ctx context.Context, now, again time.Time, limit int) (domains []schema.Domain, err error) {
	err = s.db.update(ctx, func(tx *sql.Tx) (err error) {
		domains, err = scanDomains(tx.QueryContext(ctx, domainsToCheck, unixMillis{&now}, unixMillis{&again}, limit))
		return err
	})
	return domains, wrap(err, "read domains to check")
}

// NoteDomainCheck implements schema.DomainStore.
func (s *Store) NoteDomainCheck(ctx context.Context, domainID int64, failingSince, checkAt time.Time) error {
	err := oneRow(s.db.write.ExecContext(ctx, `
		UPDATE domains SET failing_since = ?2, check_at = ?3, contested_by = iif(?2 IS NULL, 0, contested_by),
			contested_at = iif(?2 IS NULL, NULL, contested_at)
		WHERE id = ?1 AND verified_at IS NOT NULL`, domainID, unixMillis{&failingSince}, unixMillis{&checkAt}))
	return wrap(err, "note check of domain %d", domainID)
}

// ContestDomain implements schema.DomainStore.
func (s *Store) ContestDomain(ctx context.Context, domainID, by int64, at time.Time) error {
	err := oneRow(s.db.write.ExecContext(ctx, `
		UPDATE domains SET contested_by = ?2, contested_at = ?3
		WHERE id = ?1 AND verified_at IS NOT NULL AND failing_since IS NOT NULL`, domainID, by, unixMillis{&at}))
	return wrap(err, "contest domain %d", domainID)
}

// TransferDomain implements schema.DomainStore.
func (s *Store) TransferDomain(ctx context.Context, domainID int64, at, checkAt time.Time) error {
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, loseHost, domainID, unixMillis{&at}); err != nil {
			return err
		}
		return oneRow(tx.ExecContext(ctx, winHost, domainID, unixMillis{&at}, unixMillis{&checkAt}))
	})
	return wrap(err, "transfer domain %d", domainID)
}

// ReleaseDomain implements schema.DomainStore.
func (s *Store) ReleaseDomain(ctx context.Context, domainID int64, at time.Time) error {
	err := oneRow(s.db.write.ExecContext(ctx, loseDomain+`id = ?1`, domainID, unixMillis{&at}))
	return wrap(err, "release domain %d", domainID)
}
