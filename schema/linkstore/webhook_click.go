package linkstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"linkstream/schema"
)

const (
	// getsClicks is true for webhooks of clicks that are on.
	getsClicks       = `active AND {find}(' ' || events || ' ', ' link.clicked ') > 0`
	accountsOfClicks = `SELECT DISTINCT account_id FROM webhooks WHERE ` + getsClicks + ` ORDER BY account_id`
	// clickHooks locks webhooks in the order in which changes of links do.
	clickHooks = `
	SELECT id, account_id, domain_id, hash, tag, people_only, clicks_since, waiting FROM webhooks
	WHERE account_id {in: $1} AND ` + getsClicks + ` ORDER BY account_id, id{for update}`
	queuedPosition = `SELECT epoch, next, last_offset, incarnation, lane, seq FROM heard_positions WHERE partition = $1`
	// moveQueued changes no row unless the position is $2 of epoch $3.
	moveQueued = `
	INSERT INTO heard_positions AS p (partition, epoch, next, last_offset, incarnation, lane, seq)
	SELECT $1, $4, $5, $6, $7, $8, $9 WHERE CAST($2 AS bigint) = 0 AND CAST($3 AS bigint) = 0
		OR EXISTS (SELECT 1 FROM heard_positions WHERE partition = $1)
	ON CONFLICT (partition) DO UPDATE SET epoch = excluded.epoch, next = excluded.next, last_offset = excluded.last_offset,
		incarnation = excluded.incarnation, lane = excluded.lane, seq = excluded.seq
	WHERE p.next = $2 AND p.epoch = $3`
	// queuedMarks finds lanes by their numbers and, in the place of hashes, their incarnations.
	queuedMarks = `
	SELECT k.place, h.seq FROM {keys: $1 $2} CROSS JOIN heard_lanes h
	WHERE h.incarnation = {bytes: k.hash} AND h.lane = k.domain_id`
	// markQueued changes no row unless the lane's mark is below its first click, $4.
	markQueued = `
	INSERT INTO heard_lanes AS h (incarnation, lane, seq) VALUES ($1, $2, $3)
	ON CONFLICT (incarnation, lane) DO UPDATE SET seq = excluded.seq WHERE h.seq < $4`
	clickedLinks = `SELECT id, domain_id, hash, tags FROM links WHERE id {in: $1}`
	addClicks    = `
	INSERT INTO webhook_deliveries (webhook_id, message, event, at, data, clicks)
	VALUES ($1, $2, 'link.clicked', {now}, $3, $4)`
	noteClicks = `UPDATE webhooks SET waiting = waiting + $2, dropped = dropped + $3 WHERE id = $1`

	// A delivery is the first rows of clicks, in the place of the first one.
	nextClicks = `
	SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM (
		SELECT id, sum(clicks) OVER (ORDER BY id) AS total FROM (
			SELECT id, clicks FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'waiting' AND clicks > 0
			ORDER BY id LIMIT $2) AS first) AS whole
	WHERE total <= $2`
	joinClicks = `
	UPDATE webhook_deliveries SET clicks = 0, data = (
		SELECT string_agg(data, '' ORDER BY id) FROM webhook_deliveries
		WHERE webhook_id = $1 AND clicks > 0 AND id BETWEEN $2 AND $3)
	WHERE id = $2`
	dropJoined = `DELETE FROM webhook_deliveries WHERE webhook_id = $1 AND clicks > 0 AND id BETWEEN $2 AND $3`
)

// newMessage returns a webhook-id: random, and never given twice.
func newMessage() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return "msg_" + hex.EncodeToString(id[:])
}

func clickHookFields(h *schema.ClickHook) []any {
	return []any{&h.ID, &h.AccountID, &h.DomainID, &h.Hash, &h.Tag, &h.PeopleOnly, &h.Since, &h.Waiting}
}

func clickedLinkFields(l *schema.ClickedLink) []any {
	return []any{&l.ID, &l.DomainID, &l.Hash, schema.TagsColumn{List: &l.Tags}}
}

// ClickHookAccounts implements schema.ClickHookStore.
func (s *Store) ClickHookAccounts(ctx context.Context) ([]int64, error) {
	accounts, err := list(ctx, s.db, value[int64], accountsOfClicks)
	return accounts, wrap(err, "look for webhooks of clicks")
}

// QueuedPosition implements schema.ClickHookStore.
func (s *Store) QueuedPosition(ctx context.Context, partition int) (at schema.Position, err error) {
	var incarnation []byte
	into := []any{&at.Epoch, &at.Next, &at.Last.Offset, &incarnation, &at.Last.Lane.Number, &at.Last.Seq}
	err = get(ctx, s.db, into, queuedPosition, partition)
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return schema.Position{}, nil
	}
	copy(at.Last.Lane.Incarnation[:], incarnation)
	return at, wrap(err, "read position of webhooks in partition %d", partition)
}

// QueuedMarks implements schema.ClickHookStore.
func (s *Store) QueuedMarks(ctx context.Context, lanes []schema.Lane) ([]uint64, error) {
	numbers, incarnations := make([]int64, len(lanes)), make([]string, len(lanes))
	for i, lane := range lanes {
		numbers[i], incarnations[i] = int64(lane.Number), hex.EncodeToString(lane.Incarnation[:])
	}
	marks := make([]uint64, len(lanes))
	rows, err := s.db.Query(ctx, statement(queuedMarks, []any{numbers, incarnations}))
	if err == nil {
		var place int
		var mark uint64
		err = each(rows, []any{&place, &mark}, func() error {
			marks[place-1] = mark
			return nil
		})
	}
	if err != nil {
		return nil, wrap(err, "read marks of webhooks in %d lanes", len(lanes))
	}
	return marks, nil
}

// QueueClicks implements schema.ClickHookStore.
func (s *Store) QueueClicks(ctx context.Context, batch *schema.ClickBatch) error {
	err := batch.CheckEpoch()
	if err == nil {
		err = s.db.Update(ctx, func(tx Conn) error {
			if err := moveToEnd(ctx, tx, batch); err != nil {
				return err
			}
			return deliverClicks(ctx, tx, batch)
		})
	}
	return wrap(err, "deliver %d clicks of partition %d to webhooks", batch.Len(), batch.Partition)
}

// moveToEnd moves the position and the marks to the end of a batch.
func moveToEnd(ctx context.Context, tx Conn, batch *schema.ClickBatch) error {
	last := batch.Last()
	moved, err := exec(ctx, tx, moveQueued, batch.Partition, batch.Base, batch.BaseEpoch, batch.Epoch, batch.Next,
		last.Offset, last.Lane.Incarnation[:], int64(last.Lane.Number), int64(last.Seq))
	if err == nil && moved == 0 {
		err = schema.Errorf(schema.CodeConflict, "the partition is not at offset %d of epoch %d", batch.Base, batch.BaseEpoch)
	}
	if err != nil {
		return err
	}
	var b Batch
	for _, l := range batch.LaneSpans() {
		b.Parts = append(b.Parts, Part{
			Statement: statement(markQueued, []any{l.Lane.Incarnation[:], int64(l.Lane.Number), int64(l.Last), int64(l.First)}),
			Changed: func(changed int64) error {
				if changed == 0 {
					return schema.Errorf(schema.CodeConflict, "webhooks have click %d of lane %s", l.First, l.Lane)
				}
				return nil
			}})
	}
	return tx.Send(ctx, &b)
}

// deliverClicks adds clicks of a batch to the waiting rows of webhooks.
func deliverClicks(ctx context.Context, tx Conn, batch *schema.ClickBatch) error {
	hooks, err := list(ctx, tx, clickHookFields, clickHooks, batch.Accounts())
	if err != nil || len(hooks) == 0 {
		return err
	}
	found, err := list(ctx, tx, clickedLinkFields, clickedLinks, batch.ClickedBy(hooks))
	if err != nil {
		return err
	}
	links := make(map[int64]schema.ClickedLink, len(found))
	for _, link := range found {
		links[link.ID] = link
	}
	var b Batch
	for _, added := range batch.ForHooks(hooks, links) {
		for _, chunk := range added.Chunks {
			b.exec(addClicks, added.HookID, newMessage(), chunk.Data, chunk.Clicks)
		}
		b.exec(noteClicks, added.HookID, added.Bytes, added.Dropped)
	}
	return tx.Send(ctx, &b)
}

// putClicks puts waiting clicks of a webhook into up to limit deliveries.
func putClicks(ctx context.Context, tx Conn, webhookID int64, limit int) error {
	switch err := get(ctx, tx, value(new(int64)), lockWebhook, webhookID); {
	case schema.ErrorCode(err) == schema.CodeNotFound: // it is off, and nothing waits
		return nil
	case err != nil:
		return err
	}
	for range limit {
		var first, last int64
		err := get(ctx, tx, []any{&first, &last}, nextClicks, webhookID, schema.MaxDeliveryClicks)
		if err != nil || first == 0 {
			return err
		}
		var b Batch
		b.exec(joinClicks, webhookID, first, last)
		b.exec(dropJoined, webhookID, first, last)
		if err := tx.Send(ctx, &b); err != nil {
			return err
		}
	}
	return nil
}
