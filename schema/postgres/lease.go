package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

const (
	addLeaseHolder = `INSERT INTO lease_holders (incarnation) VALUES ($1) ON CONFLICT DO NOTHING`
	// lockLimit makes those who take leases of a link take turns, and with changes of its limit.
	lockLimit = `SELECT FROM links WHERE id = $1 FOR NO KEY UPDATE`
	takeLease = `
	WITH holder AS (SELECT FROM lease_holders WHERE incarnation = $2 AND NOT ended FOR SHARE),
		has AS (
			SELECT CASE WHEN $4::bigint >= 0 THEN $4::bigint
				ELSE coalesce((SELECT spent FROM leases WHERE link_id = $1 AND incarnation = $2), 0) END AS granted),
		room AS (
			SELECT greatest(0, coalesce((nullif(extension, '')::jsonb ->> 'max_clicks')::bigint, 0) - has.granted
				- (SELECT coalesce(sum(granted), 0) FROM leases WHERE link_id = $1 AND incarnation <> $2)::bigint) AS free
			FROM links, has WHERE id = $1 AND ordinal > 0)
	INSERT INTO leases AS l (link_id, incarnation, call, granted, spent)
	SELECT $1::bigint, $2::bytea, $3::bigint, has.granted + least(free, greatest(1, free / $6::bigint), $7::bigint), $5::bigint
	FROM holder, room, has
	ON CONFLICT (link_id, incarnation) DO UPDATE
		SET call = excluded.call, granted = excluded.granted, spent = greatest(l.spent, excluded.spent) WHERE l.call < excluded.call
	RETURNING granted, spent`
	stateLeases = `
	UPDATE leases l SET call = s.call, spent = greatest(l.spent, s.spent),
		granted = CASE WHEN s.granted >= 0 THEN s.granted ELSE greatest(l.spent, s.spent) END
	FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS s (link_id, call, granted, spent)
	WHERE l.link_id = s.link_id AND l.incarnation = $1 AND l.call < s.call`
	endLeaseHolder = `UPDATE lease_holders SET ended = true WHERE incarnation = $1 AND NOT ended`
	endLeases      = `
	WITH gone AS (DELETE FROM leases WHERE incarnation = $1 RETURNING link_id, spent),
		used AS (
			SELECT gone.link_id, greatest(gone.spent, s.spent) AS clicks
			FROM gone LEFT JOIN unnest($3::bigint[], $4::bigint[]) AS s (link_id, spent) USING (link_id))
	INSERT INTO leases AS l (link_id, incarnation, call, granted, spent)
	SELECT link_id, $2, 0, clicks, clicks FROM used WHERE clicks > 0 ORDER BY link_id
	ON CONFLICT (link_id, incarnation) DO UPDATE SET granted = l.granted + excluded.granted, spent = l.spent + excluded.spent`
	limitUse = `SELECT link_id, sum(granted)::bigint, sum(spent)::bigint FROM leases WHERE link_id = ANY($1) GROUP BY link_id`
)

var endedHolders schema.Incarnation

// AddLeaseHolder implements schema.LeaseStore.
func (s *Store) AddLeaseHolder(ctx context.Context, holder schema.Incarnation) error {
	_, err := s.pool.Exec(ctx, addLeaseHolder, holder[:])
	return wrap(err, "add holder of leases %s", holder)
}

// TakeLease implements schema.LeaseStore.
func (s *Store) TakeLease(ctx context.Context, holder schema.Incarnation, lease schema.LimitLease) (schema.LimitLease, error) {
	var queries pgx.Batch // one transaction, in which the second statement sees what the first one has waited for
	queries.Queue(lockLimit, lease.LinkID)
	queries.Queue(takeLease, lease.LinkID, holder[:], lease.Call, lease.Granted, lease.Spent, schema.LeaseShare, schema.MaxLease).
		QueryRow(func(row pgx.Row) error { return row.Scan(&lease.Granted, &lease.Spent) })
	err := s.pool.SendBatch(ctx, &queries).Close()
	return lease, wrap(err, "take lease of link %d", lease.LinkID)
}

// StateLeases implements schema.LeaseStore.
func (s *Store) StateLeases(ctx context.Context, holder schema.Incarnation, leases []schema.LimitLease) error {
	columns := [4][]int64{}
	for _, l := range leases {
		for i, value := range []int64{l.LinkID, l.Call, l.Granted, l.Spent} {
			columns[i] = append(columns[i], value)
		}
	}
	_, err := s.pool.Exec(ctx, stateLeases, holder[:], columns[0], columns[1], columns[2], columns[3])
	return wrap(err, "state %d leases", len(leases))
}

// EndLeases implements schema.LeaseStore.
func (s *Store) EndLeases(ctx context.Context, holder schema.Incarnation, spent map[int64]int64) error {
	links, clicks := make([]int64, 0, len(spent)), make([]int64, 0, len(spent))
	for link, n := range spent {
		links, clicks = append(links, link), append(clicks, n)
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		ended, err := tx.Exec(ctx, endLeaseHolder, holder[:])
		if err != nil || ended.RowsAffected() == 0 {
			return err
		}
		_, err = tx.Exec(ctx, endLeases, holder[:], endedHolders[:], links, clicks)
		return err
	})
	return wrap(err, "end leases of %s", holder)
}

// LimitUse implements schema.LeaseStore.
func (s *Store) LimitUse(ctx context.Context, links []int64) (map[int64]schema.LimitUse, error) {
	used := map[int64]schema.LimitUse{}
	rows, err := s.pool.Query(ctx, limitUse, links)
	if err == nil {
		var link int64
		var use schema.LimitUse
		_, err = pgx.ForEachRow(rows, []any{&link, &use.Granted, &use.Spent}, func() error {
			used[link] = use
			return nil
		})
	}
	return used, wrap(err, "read use of limits")
}
