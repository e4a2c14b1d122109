package linkstore

import (
	"context"
	"errors"
	"maps"
	"slices"

	"linkstream/schema"
)

const (
	addLeaseHolder = `INSERT INTO lease_holders (incarnation) VALUES ($1) ON CONFLICT DO NOTHING`
	// lockLimit serializes calls that take leases of a link, and changes of its limit.
	lockLimit = `SELECT id FROM links WHERE id = $1{for update}`
	takeLease = `
	WITH has AS (
			SELECT CASE WHEN CAST($4 AS bigint) >= 0 THEN CAST($4 AS bigint)
				ELSE coalesce((SELECT spent FROM leases WHERE link_id = $1 AND incarnation = $2), 0) END AS granted),
		room AS (
			SELECT {greatest}(0, coalesce(CAST({json: extension} ->> 'max_clicks' AS bigint), 0) - has.granted
				- (SELECT CAST(coalesce(sum(granted), 0) AS bigint) FROM leases WHERE link_id = $1 AND incarnation <> $2)) AS free
			FROM links, has WHERE id = $1 AND ordinal > 0)
	INSERT INTO leases AS l (link_id, incarnation, call, granted, spent)
	SELECT CAST($1 AS bigint), h.incarnation, CAST($3 AS bigint),
		has.granted + {least}(free, {greatest}(1, free / CAST($6 AS bigint)), CAST($7 AS bigint)), CAST($5 AS bigint)
	FROM lease_holders h, room, has WHERE h.incarnation = $2 AND NOT h.ended{for share of h}
	ON CONFLICT (link_id, incarnation) DO UPDATE
		SET call = excluded.call, granted = excluded.granted, spent = {greatest}(l.spent, excluded.spent)
		WHERE l.call < excluded.call
	RETURNING granted, spent`
	stateLease = `
	UPDATE leases SET call = $3, spent = {greatest}(spent, $5),
		granted = CASE WHEN CAST($4 AS bigint) >= 0 THEN CAST($4 AS bigint) ELSE {greatest}(spent, $5) END
	WHERE link_id = $1 AND incarnation = $2 AND call < $3`
	endLeaseHolder = `UPDATE lease_holders SET ended = true WHERE incarnation = $1 AND NOT ended`
	noteSpent      = `UPDATE leases SET spent = {greatest}(spent, $3) WHERE incarnation = $1 AND link_id = $2`
	deleteLeases   = `DELETE FROM leases WHERE incarnation = $1`
	keepSpent      = `
	INSERT INTO leases AS l (link_id, incarnation, call, granted, spent)
	SELECT link_id, $2, 0, spent, spent FROM leases WHERE incarnation = $1 AND spent > 0 ORDER BY link_id
	ON CONFLICT (link_id, incarnation) DO UPDATE
		SET granted = l.granted + excluded.granted, spent = l.spent + excluded.spent`
	limitUse = `
	SELECT link_id, CAST(sum(granted) AS bigint), CAST(sum(spent) AS bigint) FROM leases
		WHERE link_id {in: $1} GROUP BY link_id`
)

// endedHolders stands for all holders that have ended: its leases have what they spent.
var endedHolders schema.Incarnation

// AddLeaseHolder implements schema.LeaseStore.
func (s *Store) AddLeaseHolder(ctx context.Context, holder schema.Incarnation) error {
	_, err := exec(ctx, s.db, addLeaseHolder, holder[:])
	return wrap(err, "add holder of leases %s", holder)
}

// TakeLease implements schema.LeaseStore.
func (s *Store) TakeLease(
	ctx context.Context, holder schema.Incarnation, lease schema.LimitLease,
) (schema.LimitLease, error) {
	var b Batch // the second statement sees what the first one has waited for
	b.exec(lockLimit, lease.LinkID)
	b.get([]any{&lease.Granted, &lease.Spent}, takeLease, lease.LinkID, holder[:], lease.Call, lease.Granted, lease.Spent,
		schema.LeaseShare, schema.MaxLease)
	err := s.db.Send(ctx, &b)
	return lease, wrap(err, "take lease of link %d", lease.LinkID)
}

// StateLeases implements schema.LeaseStore.
func (s *Store) StateLeases(ctx context.Context, holder schema.Incarnation, leases []schema.LimitLease) error {
	var b Batch
	for _, l := range leases {
		b.exec(stateLease, l.LinkID, holder[:], l.Call, l.Granted, l.Spent)
	}
	return wrap(s.db.Send(ctx, &b), "state %d leases", len(leases))
}

// EndLeases implements schema.LeaseStore.
func (s *Store) EndLeases(ctx context.Context, holder schema.Incarnation, spent map[int64]int64) error {
	var b Batch
	b.execOne(endLeaseHolder, holder[:])
	for _, link := range slices.Sorted(maps.Keys(spent)) {
		b.exec(noteSpent, holder[:], link, spent[link])
	}
	b.exec(keepSpent, holder[:], endedHolders[:])
	b.exec(deleteLeases, holder[:])
	err := s.db.Send(ctx, &b)
	if errors.Is(err, ErrNoRow) { // it has ended
		err = nil
	}
	return wrap(err, "end leases of %s", holder)
}

// LimitUse implements schema.LeaseStore.
func (s *Store) LimitUse(ctx context.Context, links []int64) (map[int64]schema.LimitUse, error) {
	type use struct {
		link int64
		schema.LimitUse
	}
	fields := func(u *use) []any { return []any{&u.link, &u.Granted, &u.Spent} }
	uses, err := list(ctx, s.db, fields, limitUse, links)
	used := make(map[int64]schema.LimitUse, len(uses))
	for _, u := range uses {
		used[u.link] = u.LimitUse
	}
	return used, wrap(err, "read use of limits")
}
