package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

const (
	// hearsOfClicks is what the webhooks that hear of clicks have in common.
	hearsOfClicks = `active AND position(' link.clicked ' IN ' ' || events || ' ') > 0`
	hearing       = `SELECT DISTINCT account_id FROM webhooks WHERE ` + hearsOfClicks + ` ORDER BY account_id`
	// clickHooks locks webhooks in the order in which changes of links do.
	clickHooks = `
	SELECT id, account_id, domain_id, hash, tag, people_only, clicks_since, waiting FROM webhooks
	WHERE account_id = ANY ($1::bigint[]) AND ` + hearsOfClicks + ` ORDER BY account_id, id FOR NO KEY UPDATE`
	heardPosition = `SELECT epoch, next, last_offset, incarnation, lane, seq FROM heard_positions WHERE partition = $1`
	// moveHeard changes no row unless the position is $2 of epoch $3.
	moveHeard = `
	INSERT INTO heard_positions AS p (partition, epoch, next, last_offset, incarnation, lane, seq)
	SELECT $1, $4, $5, $6, $7, $8, $9 WHERE $2::bigint = 0 AND $3::bigint = 0 OR EXISTS (SELECT FROM heard_positions WHERE partition = $1)
	ON CONFLICT (partition) DO UPDATE SET epoch = $4, next = $5, last_offset = $6, incarnation = $7, lane = $8, seq = $9
	WHERE p.next = $2 AND p.epoch = $3`
	heardMarks = `
	SELECT coalesce(h.seq, 0) FROM unnest($1::bytea[], $2::bigint[]) WITH ORDINALITY AS l (incarnation, lane, n)
	LEFT JOIN heard_lanes h ON h.incarnation = l.incarnation AND h.lane = l.lane ORDER BY n`
	// markHeard changes a row for each lane whose mark is below its first click.
	markHeard = `
	WITH batch AS (SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[]) AS b (incarnation, lane, first_seq, last_seq))
	INSERT INTO heard_lanes AS h (incarnation, lane, seq) SELECT incarnation, lane, last_seq FROM batch
	ON CONFLICT (incarnation, lane) DO UPDATE SET seq = excluded.seq
	WHERE h.seq < (SELECT first_seq FROM batch b WHERE b.incarnation = h.incarnation AND b.lane = h.lane)`
	clickedLinks = `SELECT id, domain_id, hash, tags FROM links WHERE id = ANY ($1::bigint[])`
	addClicks    = `
	INSERT INTO webhook_deliveries (webhook_id, message, event, at, data, clicks)
	VALUES ($1, 'msg_' || replace(gen_random_uuid()::text, '-', ''), 'link.clicked', clock_timestamp(), $2, $3)`
	noteClicks = `UPDATE webhooks SET waiting = waiting + $2, dropped = dropped + $3 WHERE id = $1`

	// A delivery is the first rows of clicks, in the place of the first one.
	nextClicks = `
	SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM (SELECT id, sum(clicks) OVER (ORDER BY id) AS total FROM (
		SELECT id, clicks FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'waiting' AND clicks > 0 ORDER BY id LIMIT $2) AS first)
		AS whole
	WHERE total <= $2`
	joinClicks = `
	UPDATE webhook_deliveries SET clicks = 0, data = (
		SELECT string_agg(data, '' ORDER BY id) FROM webhook_deliveries WHERE webhook_id = $1 AND clicks > 0 AND id BETWEEN $2 AND $3)
	WHERE id = $2`
	dropJoined = `DELETE FROM webhook_deliveries WHERE webhook_id = $1 AND clicks > 0 AND id BETWEEN $2 AND $3`
)

// HearingAccounts implements schema.HearingStore.
func (s *Store) HearingAccounts(ctx context.Context) ([]int64, error) {
	rows, _ := s.pool.Query(ctx, hearing) // CollectRows returns the error
	accounts, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return accounts, wrap(err, "look for webhooks of clicks")
}

// HeardPosition implements schema.HearingStore.
func (s *Store) HeardPosition(ctx context.Context, partition int) (at schema.Position, err error) {
	var incarnation []byte
	err = s.pool.QueryRow(ctx, heardPosition, partition).
		Scan(&at.Epoch, &at.Next, &at.Last.Offset, &incarnation, &at.Last.Lane.Number, &at.Last.Seq)
	if errors.Is(err, pgx.ErrNoRows) {
		return schema.Position{}, nil
	}
	copy(at.Last.Lane.Incarnation[:], incarnation)
	return at, wrap(err, "read position of webhooks in partition %d", partition)
}

// HeardMarks implements schema.HearingStore.
func (s *Store) HeardMarks(ctx context.Context, lanes []schema.Lane) ([]uint64, error) {
	incarnations, numbers := make([][]byte, len(lanes)), make([]int64, len(lanes))
	for i, lane := range lanes {
		incarnations[i], numbers[i] = lane.Incarnation[:], int64(lane.Number)
	}
	rows, _ := s.pool.Query(ctx, heardMarks, incarnations, numbers) // CollectRows returns the error
	marks, err := pgx.CollectRows(rows, pgx.RowTo[uint64])
	return marks, wrap(err, "read marks of webhooks in %d lanes", len(lanes))
}

// HearClicks implements schema.HearingStore.
func (s *Store) HearClicks(ctx context.Context, batch *schema.ClickBatch) error {
	err := batch.CheckEpoch()
	if err == nil {
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if err := moveToEnd(ctx, tx, batch); err != nil {
				return err
			}
			return tellClicks(ctx, tx, batch)
		})
	}
	return wrap(err, "tell webhooks of %d clicks of partition %d", batch.Len(), batch.Partition)
}

// moveToEnd moves the position and the marks to the end of a batch.
func moveToEnd(ctx context.Context, tx pgx.Tx, batch *schema.ClickBatch) error {
	last := batch.Last()
	err := oneRow(tx.Exec(ctx, moveHeard, batch.Partition, batch.Base, batch.BaseEpoch, batch.Epoch, batch.Next, last.Offset,
		last.Lane.Incarnation[:], last.Lane.Number, int64(last.Seq)))
	if errors.Is(err, pgx.ErrNoRows) {
		return schema.Errorf(schema.CodeConflict, "the partition is not at offset %d of epoch %d", batch.Base, batch.BaseEpoch)
	}
	if err != nil {
		return err
	}
	lanes := batch.HeardLanes()
	incarnations, numbers := make([][]byte, len(lanes)), make([]int64, len(lanes))
	firsts, lasts := make([]int64, len(lanes)), make([]int64, len(lanes))
	for i, l := range lanes {
		incarnations[i], numbers[i], firsts[i], lasts[i] = l.Lane.Incarnation[:], int64(l.Lane.Number), int64(l.First), int64(l.Last)
	}
	moved, err := tx.Exec(ctx, markHeard, incarnations, numbers, firsts, lasts)
	if err == nil && moved.RowsAffected() != int64(len(lanes)) {
		err = schema.Errorf(schema.CodeConflict, "webhooks have heard of a lane's first click")
	}
	return err
}

// tellClicks adds clicks of a batch to what waits for webhooks.
func tellClicks(ctx context.Context, tx pgx.Tx, batch *schema.ClickBatch) error {
	hooks, err := pgx.CollectRows(query(ctx, tx, clickHooks, batch.Accounts()), func(row pgx.CollectableRow) (h schema.ClickHook, err error) {
		err = row.Scan(&h.ID, &h.AccountID, &h.DomainID, &h.Hash, &h.Tag, &h.PeopleOnly, &h.Since, &h.Waiting)
		return h, err
	})
	if err != nil || len(hooks) == 0 {
		return err
	}
	links := map[int64]schema.ClickedLink{}
	var l schema.ClickedLink
	_, err = pgx.ForEachRow(query(ctx, tx, clickedLinks, batch.ClickedBy(hooks)),
		[]any{&l.ID, &l.DomainID, &l.Hash, schema.TagsColumn{List: &l.Tags}}, func() error { links[l.ID] = l; return nil })
	if err != nil {
		return err
	}
	var statements pgx.Batch
	for _, heard := range batch.Hear(hooks, links) {
		for _, chunk := range heard.Chunks {
			statements.Queue(addClicks, heard.HookID, chunk.Data, chunk.Clicks)
		}
		statements.Queue(noteClicks, heard.HookID, heard.Bytes, heard.Dropped)
	}
	return tx.SendBatch(ctx, &statements).Close()
}

// putClicks puts clicks that wait for a webhook into up to limit deliveries.
func putClicks(ctx context.Context, tx pgx.Tx, webhookID int64, limit int) error {
	if locked, err := tx.Exec(ctx, lockWebhook, webhookID); err != nil || locked.RowsAffected() == 0 { // it is off, and nothing waits
		return err
	}
	for range limit {
		var first, last int64
		err := tx.QueryRow(ctx, nextClicks, webhookID, schema.MaxHeardClicks).Scan(&first, &last)
		if err != nil || first == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, joinClicks, webhookID, first, last); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, dropJoined, webhookID, first, last); err != nil {
			return err
		}
	}
	return nil
}
