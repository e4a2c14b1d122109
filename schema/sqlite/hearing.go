package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"linkstream/schema"
)

const (
	// hearsOfClicks is what the webhooks that hear of clicks have in common.
	hearsOfClicks = `active AND instr(' ' || events || ' ', ' link.clicked ') > 0`
	hearing       = `SELECT DISTINCT account_id FROM webhooks WHERE ` + hearsOfClicks + ` ORDER BY account_id`
	clickHooks    = `
	SELECT id, account_id, domain_id, hash, tag, people_only, clicks_since, waiting FROM webhooks
	WHERE account_id IN (SELECT value FROM json_each(?)) AND ` + hearsOfClicks + ` ORDER BY id`
	heardPosition = `SELECT epoch, next, last_offset, incarnation, lane, seq FROM heard_positions WHERE partition = ?`
	setHeard      = `
	INSERT OR REPLACE INTO heard_positions (partition, epoch, next, last_offset, incarnation, lane, seq) VALUES (?, ?, ?, ?, ?, ?, ?)`
	heardMark = `SELECT coalesce((SELECT seq FROM heard_lanes WHERE incarnation = ? AND lane = ?), 0)`
	markHeard = `
	INSERT INTO heard_lanes (incarnation, lane, seq) VALUES (?1, ?2, ?3)
	ON CONFLICT DO UPDATE SET seq = excluded.seq WHERE seq < ?4`
	clickedLinks = `SELECT id, domain_id, hash, tags FROM links WHERE id IN (SELECT value FROM json_each(?))`
	addClicks    = `
	INSERT INTO webhook_deliveries (webhook_id, message, event, at, data, clicks)
	VALUES (?, 'msg_' || lower(hex(randomblob(16))), 'link.clicked', CAST(unixepoch('subsec') * 1000 AS INTEGER), ?, ?)`
	noteClicks = `UPDATE webhooks SET waiting = waiting + ?2, dropped = dropped + ?3 WHERE id = ?1`

	// A delivery is the first rows of clicks, in the place of the first one.
	nextClicks = `
	SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM (SELECT id, sum(clicks) OVER (ORDER BY id) AS total FROM (
		SELECT id, clicks FROM webhook_deliveries WHERE webhook_id = ?1 AND status = 'waiting' AND clicks > 0 ORDER BY id LIMIT ?2))
	WHERE total <= ?2`
	joinClicks = `
	UPDATE webhook_deliveries SET clicks = 0, data = (
		SELECT group_concat(data, '' ORDER BY id) FROM webhook_deliveries WHERE webhook_id = ?1 AND clicks > 0 AND id BETWEEN ?2 AND ?3)
	WHERE id = ?2`
	dropJoined = `DELETE FROM webhook_deliveries WHERE webhook_id = ?1 AND clicks > 0 AND id BETWEEN ?2 AND ?3`
)

// HearingAccounts implements schema.HearingStore.
func (s *Store) HearingAccounts(ctx context.Context) (accounts []int64, err error) {
	rows, err := s.db.query(ctx, hearing)
	err = forEachRow(rows, err, func() error {
		var account int64
		err := rows.Scan(&account)
		accounts = append(accounts, account)
		return err
	})
	return accounts, wrap(err, "look for webhooks of clicks")
}

// HeardPosition implements schema.HearingStore.
func (s *Store) HeardPosition(ctx context.Context, partition int) (schema.Position, error) {
	at, err := scanHeard(s.db.queryRow(ctx, heardPosition, partition))
	return at, wrap(err, "read position of webhooks in partition %d", partition)
}

func scanHeard(row *sql.Row) (at schema.Position, err error) {
	var incarnation []byte
	err = row.Scan(&at.Epoch, &at.Next, &at.Last.Offset, &incarnation, &at.Last.Lane.Number, &at.Last.Seq)
	if errors.Is(err, sql.ErrNoRows) {
		return schema.Position{}, nil
	}
	copy(at.Last.Lane.Incarnation[:], incarnation)
	return at, err
}

// HeardMarks implements schema.HearingStore.
func (s *Store) HeardMarks(ctx context.Context, lanes []schema.Lane) ([]uint64, error) {
	marks := make([]uint64, len(lanes))
	for i, lane := range lanes {
		if err := s.db.queryRow(ctx, heardMark, lane.Incarnation[:], lane.Number).Scan(&marks[i]); err != nil {
			return nil, wrap(err, "read marks of webhooks in %d lanes", len(lanes))
		}
	}
	return marks, nil
}

// HearClicks implements schema.HearingStore.
func (s *Store) HearClicks(ctx context.Context, batch *schema.ClickBatch) error {
	err := batch.CheckEpoch()
	if err == nil {
		err = s.db.update(ctx, func(tx *sql.Tx) error {
			if err := moveHeard(ctx, tx, batch); err != nil {
				return err
			}
			return tellClicks(ctx, tx, batch)
		})
	}
	return wrap(err, "tell webhooks of %d clicks", batch.Len())
}

// moveHeard moves the position and the marks to the end of a batch.
func moveHeard(ctx context.Context, tx *sql.Tx, batch *schema.ClickBatch) error {
	at, err := scanHeard(tx.QueryRowContext(ctx, heardPosition, batch.Partition))
	if err == nil && (at.Epoch != batch.BaseEpoch || at.Next != batch.Base) {
		err = schema.Errorf(schema.CodeConflict, "the partition is at offset %d of epoch %d", at.Next, at.Epoch)
	}
	for _, l := range batch.HeardLanes() {
		if err != nil {
			return err
		}
		err = oneRow(tx.ExecContext(ctx, markHeard, l.Lane.Incarnation[:], l.Lane.Number, int64(l.Last), int64(l.First)))
		if errors.Is(err, sql.ErrNoRows) {
			err = schema.Errorf(schema.CodeConflict, "webhooks have heard of click %d of lane %s", l.First, l.Lane)
		}
	}
	if err == nil {
		last := batch.Last()
		_, err = tx.ExecContext(ctx, setHeard, batch.Partition, batch.Epoch, batch.Next, last.Offset, last.Lane.Incarnation[:],
			last.Lane.Number, int64(last.Seq))
	}
	return err
}

// tellClicks adds clicks of a batch to what waits for webhooks.
func tellClicks(ctx context.Context, tx *sql.Tx, batch *schema.ClickBatch) error {
	accounts, err := json.Marshal(batch.Accounts())
	if err != nil {
		return err
	}
	var hooks []schema.ClickHook
	rows, err := tx.QueryContext(ctx, clickHooks, string(accounts))
	err = forEachRow(rows, err, func() error {
		var h schema.ClickHook
		err := rows.Scan(&h.ID, &h.AccountID, &h.DomainID, &h.Hash, &h.Tag, &h.PeopleOnly, unixMillis{&h.Since}, &h.Waiting)
		hooks = append(hooks, h)
		return err
	})
	if err != nil {
		return err
	}
	ids, err := json.Marshal(batch.ClickedBy(hooks))
	if err != nil {
		return err
	}
	links := map[int64]schema.ClickedLink{}
	rows, err = tx.QueryContext(ctx, clickedLinks, string(ids))
	err = forEachRow(rows, err, func() error {
		var l schema.ClickedLink
		err := rows.Scan(&l.ID, &l.DomainID, &l.Hash, schema.TagsColumn{List: &l.Tags})
		links[l.ID] = l
		return err
	})
	for _, heard := range batch.Hear(hooks, links) {
		for _, chunk := range heard.Chunks {
			if err == nil {
				_, err = tx.ExecContext(ctx, addClicks, heard.HookID, chunk.Data, chunk.Clicks)
			}
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, noteClicks, heard.HookID, heard.Bytes, heard.Dropped)
		}
	}
	return err
}

// putClicks puts clicks that wait for a webhook into up to limit deliveries.
func putClicks(ctx context.Context, tx *sql.Tx, webhookID int64, limit int) error {
	for range limit {
		var first, last int64
		err := tx.QueryRowContext(ctx, nextClicks, webhookID, schema.MaxHeardClicks).Scan(&first, &last)
		if err != nil || first == 0 {
			return err
		}
		if _, err := tx.ExecContext(ctx, joinClicks, webhookID, first, last); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, dropJoined, webhookID, first, last); err != nil {
			return err
		}
	}
	return nil
}
