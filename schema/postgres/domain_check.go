package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

const (
	// domainsToCheck takes what no concurrent call has taken. It waits for no one, CreateLink's lock on a domain included.
	domainsToCheck = `
	UPDATE domains SET check_at = $2 WHERE id = ANY (ARRAY(
		SELECT id FROM domains WHERE check_at <= $1 ORDER BY check_at LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED))
	RETURNING ` + domainColumns
	lockHost = `
	SELECT FROM domains WHERE host = (SELECT host FROM domains WHERE id = $1) ORDER BY id FOR NO KEY UPDATE`
	loseDomain = `
	UPDATE domains SET verified_at = NULL, check_at = NULL, failing_since = NULL, contested_by = 0, contested_at = NULL,
		lost_at = $2 WHERE verified_at IS NOT NULL AND `
	loseHost = loseDomain + `host = (SELECT host FROM domains WHERE id = $1) AND id <> $1`
	winHost  = `
	UPDATE domains SET verified_at = coalesce(verified_at, $2), check_at = $3, failing_since = NULL, contested_by = 0,
		contested_at = NULL, lost_at = NULL WHERE id = $1`
)

// DomainsToCheck implements schema.DomainStore.
func (s *Store) DomainsToCheck(ctx context.Context, now, again time.Time, limit int) ([]schema.Domain, error) {
	domains, err := s.domains(ctx, domainsToCheck, now, again, limit)
	return domains, wrap(err, "read domains to check")
}

// NoteDomainCheck implements schema.DomainStore.
func (s *Store) NoteDomainCheck(ctx context.Context, domainID int64, failingSince, checkAt time.Time) error {
	err := oneRow(s.pool.Exec(ctx, `
		UPDATE domains SET failing_since = $2, check_at = $3,
			contested_by = CASE WHEN $2::timestamptz IS NULL THEN 0 ELSE contested_by END,
			contested_at = CASE WHEN $2::timestamptz IS NULL THEN NULL ELSE contested_at END
		WHERE id = $1 AND verified_at IS NOT NULL`, domainID, nullIfZero(failingSince), nullIfZero(checkAt)))
	return wrap(err, "note check of domain %d", domainID)
}

// ContestDomain implements schema.DomainStore.
func (s *Store) ContestDomain(ctx context.Context, domainID, by int64, at time.Time) error {
	err := oneRow(s.pool.Exec(ctx, `
		UPDATE domains SET contested_by = $2, contested_at = $3
		WHERE id = $1 AND verified_at IS NOT NULL AND failing_since IS NOT NULL`, domainID, by, nullIfZero(at)))
	return wrap(err, "contest domain %d", domainID)
}

// TransferDomain implements schema.DomainStore. The lock on all domains of the host makes concurrent calls wait.
func (s *Store) TransferDomain(ctx context.Context, domainID int64, at, checkAt time.Time) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockHost, domainID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, loseHost, domainID, at); err != nil {
			return err
		}
		return oneRow(tx.Exec(ctx, winHost, domainID, at, nullIfZero(checkAt)))
	})
	return wrap(err, "transfer domain %d", domainID)
}

// ReleaseDomain implements schema.DomainStore.
func (s *Store) ReleaseDomain(ctx context.Context, domainID int64, at time.Time) error {
	return wrap(oneRow(s.pool.Exec(ctx, loseDomain+`id = $1`, domainID, at)), "release domain %d", domainID)
}
