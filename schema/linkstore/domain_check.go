package linkstore

import (
	"context"
	"time"

	"linkstream/schema"
)

const (
	// domainsToCheck skips domains that a concurrent call takes. It waits for no lock, such as those of links being
	// created.
	domainsToCheck = `
	UPDATE domains SET check_at = $2 WHERE id {among}
		SELECT id FROM domains WHERE check_at <= $1 ORDER BY check_at LIMIT $3{for update skip locked}{end}
	RETURNING ` + domainColumns
	noteDomainCheck = `
	UPDATE domains SET failing_since = $2, check_at = $3,
		contested_by = CASE WHEN CAST($2 AS timestamptz) IS NULL THEN 0 ELSE contested_by END,
		contested_at = CASE WHEN CAST($2 AS timestamptz) IS NULL THEN NULL ELSE contested_at END
	WHERE id = $1 AND verified_at IS NOT NULL`
	contestDomain = `
	UPDATE domains SET contested_by = $2, contested_at = $3
	WHERE id = $1 AND verified_at IS NOT NULL AND failing_since IS NOT NULL`
	lockHost = `
	SELECT id FROM domains WHERE host = (SELECT host FROM domains WHERE id = $1) ORDER BY id{for update}`
	loseDomain = `
	UPDATE domains SET verified_at = NULL, changed_after = 0, check_at = NULL, failing_since = NULL, contested_by = 0,
		contested_at = NULL, lost_at = $2 WHERE verified_at IS NOT NULL AND `
	releaseDomain = loseDomain + `id = $1`
	loseHost      = loseDomain + `host = (SELECT host FROM domains WHERE id = $1) AND id <> $1`
	winHost       = `
	UPDATE domains SET verified_at = coalesce(verified_at, $2), changed_after = ` + nowVerified + `, check_at = $3,
		failing_since = NULL, contested_by = 0, contested_at = NULL, lost_at = NULL WHERE id = $1`
)

// DomainsToCheck implements schema.DomainStore.
func (s *Store) DomainsToCheck(
	ctx context.Context, now, again time.Time, limit int,
) (domains []schema.Domain, err error) {
	var b Batch
	b.rows(func(rows Rows) (err error) {
		domains, err = collect(rows, domainFields)
		return err
	}, domainsToCheck, now, again, limit)
	err = s.db.Send(ctx, &b)
	return domains, wrap(err, "read domains to check")
}

// NoteDomainCheck implements schema.DomainStore.
func (s *Store) NoteDomainCheck(ctx context.Context, domainID int64, failingSince, checkAt time.Time) error {
	return wrap(execOne(ctx, s.db, noteDomainCheck, domainID, failingSince, checkAt), "note check of domain %d", domainID)
}

// ContestDomain implements schema.DomainStore.
func (s *Store) ContestDomain(ctx context.Context, domainID, by int64, at time.Time) error {
	return wrap(execOne(ctx, s.db, contestDomain, domainID, by, at), "contest domain %d", domainID)
}

// TransferDomain implements schema.DomainStore. The lock on all domains of the host serializes concurrent calls.
func (s *Store) TransferDomain(ctx context.Context, domainID int64, at, checkAt time.Time) error {
	var b Batch
	b.exec(lockHost, domainID)
	b.exec(loseHost, domainID, at)
	b.execOne(winHost, domainID, at, checkAt)
	return wrap(s.db.Send(ctx, &b), "transfer domain %d", domainID)
}

// ReleaseDomain implements schema.DomainStore.
func (s *Store) ReleaseDomain(ctx context.Context, domainID int64, at time.Time) error {
	return wrap(execOne(ctx, s.db, releaseDomain, domainID, at), "release domain %d", domainID)
}
