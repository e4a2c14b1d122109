package linkstore

import (
	"context"
	"time"

	"linkstream/schema"
)

// countLease returns no row if the token has a later window, unless that is later than $3: the clock that named it was
// wrong.
const countLease = `
	INSERT INTO rate_windows AS r (token_id, begins_at, leases) VALUES ($1, $2, 1)
	ON CONFLICT (token_id) DO UPDATE SET
		leases = CASE r.begins_at WHEN excluded.begins_at THEN r.leases + 1 ELSE 1 END, begins_at = excluded.begins_at
	WHERE r.begins_at <= excluded.begins_at OR r.begins_at > $3
	RETURNING leases`

// LeaseRequests implements schema.RateStore.
func (s *Store) LeaseRequests(
	ctx context.Context, tokenID int64, window time.Time, limit int,
) (granted, left int, err error) {
	var leases int64
	err = write(ctx, s.db, value(&leases), countLease, tokenID, window, window.Add(schema.RateSkew))
	switch {
	case schema.ErrorCode(err) == schema.CodeNotFound:
		return 0, 0, nil
	case err != nil:
		return 0, 0, wrap(err, "lease requests of token %d", tokenID)
	}
	granted, left = schema.Lease(limit, leases)
	return granted, left, nil
}
