package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"

	"linkstream/schema"
)

const (
	addLeaseHolder = `INSERT INTO lease_holders (incarnation) VALUES (?) ON CONFLICT DO NOTHING`
	takeLease      = `
	WITH has AS (
			SELECT iif(?4 >= 0, ?4, coalesce((SELECT spent FROM leases WHERE link_id = ?1 AND incarnation = ?2), 0)) AS granted),
		room AS (
			SELECT max(0, coalesce(json_extract(nullif(extension, ''), '$.max_clicks'), 0) - has.granted
				- (SELECT coalesce(sum(granted), 0) FROM leases WHERE link_id = ?1 AND incarnation <> ?2)) AS free
			FROM links, has WHERE id = ?1 AND ordinal > 0)
	INSERT INTO leases AS l (link_id, incarnation, call, granted, spent)
	SELECT ?1, ?2, ?3, has.granted + min(free, max(1, free / ?6), ?7), ?5
	FROM lease_holders, room, has WHERE lease_holders.incarnation = ?2 AND NOT ended
	ON CONFLICT (link_id, incarnation) DO UPDATE
		SET call = excluded.call, granted = excluded.granted, spent = max(l.spent, excluded.spent) WHERE l.call < excluded.call
	RETURNING granted, spent`
	stateLease = `
	UPDATE leases SET call = ?3, granted = iif(?4 >= 0, ?4, max(spent, ?5)), spent = max(spent, ?5)
	WHERE link_id = ?1 AND incarnation = ?2 AND call < ?3`
	endLeaseHolder = `UPDATE lease_holders SET ended = 1 WHERE incarnation = ? AND NOT ended`
	// endLeases gets the clicks by link as a JSON object.
	endLeases = `
	INSERT INTO leases AS l (link_id, incarnation, call, granted, spent)
	SELECT link_id, ?2, 0, clicks, clicks
	FROM (SELECT link_id, max(spent, coalesce(json_extract(?3, '$."' || link_id || '"'), 0)) AS clicks FROM leases WHERE incarnation = ?1)
	WHERE clicks > 0
	ON CONFLICT (link_id, incarnation) DO UPDATE SET granted = l.granted + excluded.granted, spent = l.spent + excluded.spent`
	deleteLeases = `DELETE FROM leases WHERE incarnation = ?`
	limitUse     = `
	SELECT link_id, sum(granted), sum(spent) FROM leases WHERE link_id IN (SELECT value FROM json_each(?)) GROUP BY link_id`
)

var endedHolders schema.Incarnation

// AddLeaseHolder implements schema.LeaseStore.
func (s *Store) AddLeaseHolder(ctx context.Context, holder schema.Incarnation) error {
	_, err := s.db.write.ExecContext(ctx, addLeaseHolder, holder[:])
	return wrap(err, "add holder of leases %s", holder)
}

// TakeLease implements schema.LeaseStore.
func (s *Store) TakeLease(ctx context.Context, holder schema.Incarnation, lease schema.LimitLease) (schema.LimitLease, error) {
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, takeLease, lease.LinkID, holder[:], lease.Call, lease.Granted, lease.Spent, schema.LeaseShare,
			schema.MaxLease).Scan(&lease.Granted, &lease.Spent)
	})
	return lease, wrap(err, "take lease of link %d", lease.LinkID)
}

// StateLeases implements schema.LeaseStore.
func (s *Store) StateLeases(ctx context.Context, holder schema.Incarnation, leases []schema.LimitLease) error {
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		for _, l := range leases {
			if _, err := tx.ExecContext(ctx, stateLease, l.LinkID, holder[:], l.Call, l.Granted, l.Spent); err != nil {
				return err
			}
		}
		return nil
	})
	return wrap(err, "state %d leases", len(leases))
}

// EndLeases implements schema.LeaseStore.
func (s *Store) EndLeases(ctx context.Context, holder schema.Incarnation, spent map[int64]int64) error {
	clicks, err := json.Marshal(spent)
	if err != nil {
		return err
	}
	err = s.db.update(ctx, func(tx *sql.Tx) error {
		ended, err := tx.ExecContext(ctx, endLeaseHolder, holder[:])
		if err != nil {
			return err
		}
		if n, err := ended.RowsAffected(); err != nil || n == 0 {
			return err
		}
		if _, err = tx.ExecContext(ctx, endLeases, holder[:], endedHolders[:], string(clicks)); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, deleteLeases, holder[:])
		return err
	})
	return wrap(err, "end leases of %s", holder)
}

// LimitUse implements schema.LeaseStore.
func (s *Store) LimitUse(ctx context.Context, links []int64) (map[int64]schema.LimitUse, error) {
	ids, err := json.Marshal(links)
	if err != nil {
		return nil, err
	}
	used := map[int64]schema.LimitUse{}
	rows, err := s.db.query(ctx, limitUse, string(ids))
	if err != nil {
		return nil, wrap(err, "read use of limits")
	}
	defer rows.Close()
	for rows.Next() {
		var link int64
		var use schema.LimitUse
		if err := rows.Scan(&link, &use.Granted, &use.Spent); err != nil {
			return nil, wrap(err, "read use of limits")
		}
		used[link] = use
	}
	return used, wrap(rows.Err(), "read use of limits")
}
