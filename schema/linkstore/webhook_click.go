package linkstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"

	"linkstream/schema"
)

const (
	// getsClicks is true for webhooks of clicks that are on.
	getsClicks       = `active AND {find}(' ' || events || ' ', ' link.clicked ') > 0`
	accountsOfClicks = `SELECT DISTINCT account_id FROM webhooks WHERE ` + getsClicks + ` ORDER BY account_id`
	clickHooks       = `
	SELECT id, account_id, domain_id, hash, tag, people_only, clicks_since, waiting FROM webhooks
	WHERE account_id {in: $1} AND ` + getsClicks + ` ORDER BY account_id, id`
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
	// noteClicks locks a webhook, unless it was switched off meanwhile. So rows become visible in the order of their IDs.
	noteClicks = `UPDATE webhooks SET waiting = waiting + $2, dropped = dropped + $3 WHERE id = $1 AND ` + getsClicks
	addClicks  = `
	INSERT INTO webhook_deliveries (webhook_id, message, event, at, data, clicks)
	SELECT id, $2, 'link.clicked', {now}, $3, $4 FROM webhooks WHERE id = $1 AND ` + getsClicks

	waitingClicks = `
	SELECT id, clicks FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'waiting' AND clicks > 0
	ORDER BY id LIMIT $2`
	// A delivery has some rows of clicks, in the place of the first one.
	joinClicks = `
	UPDATE webhook_deliveries SET clicks = 0, data = (
		SELECT string_agg(data, '' ORDER BY id) FROM webhook_deliveries
		WHERE webhook_id = $1 AND clicks > 0 AND id BETWEEN $2 AND $3)
	WHERE id = $2 AND clicks > 0`
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

// QueueClicks implements schema.ClickHookStore. It reads webhooks and links first, and locks the webhooks, which are of
// many accounts, for no longer than the engine executes the batch. A webhook that was switched off meanwhile gets no
// clicks.
func (s *Store) QueueClicks(ctx context.Context, batch *schema.ClickBatch) error {
	var b Batch
	err := batch.CheckEpoch()
	if err == nil {
		b.moveToEnd(batch)
		err = s.deliverClicks(ctx, &b, batch)
	}
	if err == nil {
		err = s.db.Send(ctx, &b)
	}
	if errors.Is(err, ErrNoRow) {
		err = schema.Errorf(schema.CodeConflict, "the partition is not at offset %d of epoch %d, or webhooks have its clicks",
			batch.Base, batch.BaseEpoch)
	}
	return wrap(err, "deliver %d clicks of partition %d to webhooks", batch.Len(), batch.Partition)
}

// moveToEnd moves the position and the marks to the end of a batch of clicks.
func (b *Batch) moveToEnd(clicks *schema.ClickBatch) {
	last := clicks.Last()
	b.execOne(moveQueued, clicks.Partition, clicks.Base, clicks.BaseEpoch, clicks.Epoch, clicks.Next, last.Offset,
		last.Lane.Incarnation[:], int64(last.Lane.Number), int64(last.Seq))
	for _, l := range clicks.LaneSpans() {
		b.execOne(markQueued, l.Lane.Incarnation[:], int64(l.Lane.Number), int64(l.Last), int64(l.First))
	}
}

// deliverClicks adds clicks to the waiting rows of webhooks.
func (s *Store) deliverClicks(ctx context.Context, b *Batch, clicks *schema.ClickBatch) error {
	hooks, err := list(ctx, s.db, clickHookFields, clickHooks, clicks.Accounts())
	if err != nil || len(hooks) == 0 {
		return err
	}
	found, err := list(ctx, s.db, clickedLinkFields, clickedLinks, clicks.ClickedBy(hooks))
	if err != nil {
		return err
	}
	links := make(map[int64]schema.ClickedLink, len(found))
	for _, link := range found {
		links[link.ID] = link
	}
	for _, added := range clicks.ForHooks(hooks, links) {
		b.exec(noteClicks, added.HookID, added.Bytes, added.Dropped)
		for _, chunk := range added.Chunks {
			b.exec(addClicks, added.HookID, newMessage(), chunk.Data, chunk.Clicks)
		}
	}
	return nil
}

// putClicks puts waiting clicks of a webhook into up to limit deliveries, and returns the deliveries that wait. Rows
// become visible in the order of their IDs. A process that stood still for longer than its lease may have read fewer
// rows than the present holder. Of their batches the second one changes nothing, and returns no deliveries.
func (s *Store) putClicks(
	ctx context.Context, accountID, webhookID int64, limit int,
) (all []schema.Delivery, err error) {
	type row struct{ id, clicks int64 }
	fields := func(r *row) []any { return []any{&r.id, &r.clicks} }
	rows, err := list(ctx, s.db, fields, waitingClicks, webhookID, limit*schema.MaxDeliveryClicks)
	if err != nil {
		return nil, err
	}
	var b Batch
	b.lockWebhook(webhookID) // if it is off, nothing waits
	for left := limit; left > 0 && len(rows) > 0; left-- {
		n, clicks := 0, int64(0)
		for ; n < len(rows) && clicks+rows[n].clicks <= schema.MaxDeliveryClicks; n++ {
			clicks += rows[n].clicks
		}
		b.execOne(joinClicks, webhookID, rows[0].id, rows[n-1].id)
		b.exec(dropJoined, webhookID, rows[0].id, rows[n-1].id)
		rows = rows[n:]
	}
	b.rows(func(rows Rows) (err error) {
		all, _, err = scanWaiting(rows)
		return err
	}, waitingDeliveries, webhookID, limit)
	if err = s.sendInTurn(ctx, accountID, &b); errors.Is(err, ErrNoRow) {
		return nil, nil
	}
	return all, err
}
