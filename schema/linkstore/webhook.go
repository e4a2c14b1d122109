package linkstore

import (
	"context"
	"slices"
	"time"

	"linkstream/schema"
)

const (
	webhookColumns = `id, account_id, url, events, domain_id, hash, tag, people_only, active, off_reason, secret,
		old_secret, old_secret_until, created_at, updated_at, token_id, expires_at, waiting, dropped, failing_since, next_at,
		attempted_at, last_error`
	insertWebhook = `
	INSERT INTO webhooks (account_id, url, events, domain_id, hash, tag, people_only, active, secret, created_at,
		updated_at, token_id, expires_at, next_at, clicks_since)
	SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $11, $12, {now}, {now}
	WHERE (SELECT count(*) FROM webhooks WHERE account_id = $1) < $13
	RETURNING id`
	webhooksOfAccount = `SELECT ` + webhookColumns + ` FROM webhooks WHERE account_id = $1 ORDER BY id`
	webhookOfAccount  = `SELECT ` + webhookColumns + ` FROM webhooks WHERE account_id = $1 AND id = $2`
	updateWebhook     = `
	UPDATE webhooks SET url = $3, events = $4, domain_id = $5, hash = $6, tag = $7, people_only = $8, active = $9,
		updated_at = $10, token_id = $11, expires_at = $12, off_reason = '', failing_since = NULL, next_at = {now},
		holder = '',
		clicks_since = CASE WHEN ` + getsClicks + ` THEN clicks_since ELSE {now} END
	WHERE account_id = $1 AND id = $2`
	rotateSecret = `
	UPDATE webhooks SET old_secret = secret, old_secret_until = $4, secret = $3 WHERE account_id = $1 AND id = $2`
	deleteWebhook = `DELETE FROM webhooks WHERE account_id = $1 AND id = $2`
	noteDropped   = `
	UPDATE webhooks SET waiting = 0, dropped = dropped
		+ (SELECT count(*) FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'waiting')
	WHERE id = $1 AND NOT active`
	dropWaiting = `
	DELETE FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'waiting'
		AND NOT (SELECT active FROM webhooks WHERE id = $1)`
	reserveTest = `
	UPDATE webhooks SET waiting = waiting + 2 WHERE account_id = $1 AND id = $2 AND active AND waiting + 2 <= $3
		AND (SELECT count(*) FROM (
			SELECT 1 FROM webhook_deliveries WHERE webhook_id = $2 AND status = 'waiting' LIMIT $4) AS first) < $4`
	addTest = `
	INSERT INTO webhook_deliveries (webhook_id, message, event, at, data) VALUES ($1, $2, $3, {now}, '{}')`
	// lockWebhook comes first in every transaction that changes deliveries of a webhook.
	lockWebhook    = `SELECT id FROM webhooks WHERE id = $1 AND active{for update}`
	resendDelivery = `
	UPDATE webhook_deliveries SET status = 'waiting' WHERE webhook_id = $1 AND message = $2 AND status <> 'waiting'`
	// addResent changes no row if there is no such delivery.
	addResent = `
	UPDATE webhooks SET waiting = {greatest}(0, waiting + coalesce((
		SELECT octet_length(data) FROM webhook_deliveries
		WHERE webhook_id = $1 AND message = $2 AND status <> 'waiting'), 0))
	WHERE id = $1 AND active AND EXISTS (
		SELECT 1 FROM webhook_deliveries WHERE webhook_id = $1 AND message = $2 AND clicks = 0)`
	endWaiting = `
	UPDATE webhooks SET waiting = {greatest}(0, waiting - $2)
	WHERE id = $1 AND EXISTS (SELECT 1 FROM webhook_deliveries WHERE id = $3 AND status = 'waiting')`

	deliveryColumns = `id, message, event, at, status, attempts, error, answer_status, took, attempted_at`
	deliveries      = `
	SELECT ` + deliveryColumns + ` FROM webhook_deliveries WHERE webhook_id = $1 AND clicks = 0 ORDER BY id DESC LIMIT $2`
	delivery = `
	SELECT ` + deliveryColumns + `, data, answer FROM webhook_deliveries
	WHERE webhook_id = $1 AND message = $2 AND clicks = 0`
	waitingDeliveries = `
	SELECT ` + deliveryColumns + `, data, clicks > 0 FROM webhook_deliveries
	WHERE webhook_id = $1 AND status = 'waiting' ORDER BY id LIMIT $2`

	canSend = `w.waiting > 0 AND w.next_at <= {now} AND w.active AND (w.leased_until IS NULL OR w.leased_until <= {now})
		AND (w.expires_at IS NULL OR w.expires_at > {now}) AND NOT (SELECT suspended FROM accounts WHERE id = w.account_id)`
	isOver  = `active AND expires_at IS NOT NULL AND expires_at <= {now}`
	hasWork = `
	SELECT EXISTS (SELECT 1 FROM webhooks w WHERE ` + canSend + `), EXISTS (SELECT 1 FROM webhooks WHERE ` + isOver + `)`
	webhooksToEnd = `SELECT id FROM webhooks WHERE ` + isOver + ` ORDER BY expires_at LIMIT 100`
	endWebhook    = `UPDATE webhooks SET active = false, off_reason = $2, holder = '' WHERE id = $1`
	claimWebhooks = `
	UPDATE webhooks SET holder = $1, leased_until = {now} + CAST($2 AS interval), next_at = {now} WHERE id {among}
		SELECT w.id FROM webhooks w WHERE ` + canSend + ` ORDER BY w.next_at LIMIT $3{for update skip locked}{end}
	RETURNING ` + webhookColumns
	noteAttempt = `
	UPDATE webhooks SET leased_until = {now} + CAST($3 AS interval), next_at = {now} + CAST($5 AS interval),
		failing_since = CASE WHEN NOT $4 THEN coalesce(failing_since, {now}) END,
		active = active AND $6 = '', off_reason = $6, attempted_at = {now}, last_error = $7
	WHERE id = $1 AND holder = $2`
	setDelivery = `
	UPDATE webhook_deliveries SET status = $2, attempts = attempts + 1, error = $3, answer_status = $4, took = $5,
		answer = $6, attempted_at = {now}
	WHERE id = $1 AND status = 'waiting'`
	forgetDeliveries = `
	DELETE FROM webhook_deliveries WHERE webhook_id = $1 AND status <> 'waiting' AND id <= (
		SELECT id FROM webhook_deliveries WHERE webhook_id = $1 AND status <> 'waiting' ORDER BY id DESC LIMIT 1 OFFSET $2)`
	releaseWebhook = `UPDATE webhooks SET holder = '', leased_until = NULL WHERE id = $1 AND holder = $2`
)

func webhookFields(h *schema.Webhook) []any {
	return []any{&h.ID, &h.AccountID, &h.URL, schema.TagsColumn{List: &h.Events}, &h.DomainID, &h.Hash, &h.Tag,
		&h.PeopleOnly, &h.Active, &h.OffReason, &h.Secret, &h.OldSecret, &h.OldSecretUntil, &h.CreatedAt, &h.UpdatedAt,
		&h.TokenID, &h.ExpiresAt, &h.Waiting, &h.Dropped, &h.FailingSince, &h.NextAt,
		&h.AttemptedAt, &h.LastError}
}

func deliveryFields(d *schema.Delivery) []any {
	return []any{&d.ID, &d.Message, &d.Event, &d.At, &d.Status, &d.Attempts, &d.Error, &d.Answer.Status,
		millis{&d.Answer.Took}, &d.AttemptedAt}
}

// CreateWebhook implements schema.WebhookStore. It locks the account, so that concurrent calls see each other's
// webhooks.
func (s *Store) CreateWebhook(ctx context.Context, h *schema.Webhook) error {
	err := s.updateInTurn(ctx, h.AccountID, func(tx Conn) error {
		if err := get(ctx, tx, value(new(int64)), lockAccount, h.AccountID); err != nil {
			return err
		}
		var err error
		if h.ExpiresAt, err = lockToken(ctx, tx, h.TokenID); err != nil {
			return err
		}
		err = write(ctx, tx, value(&h.ID), insertWebhook, h.AccountID, h.URL, schema.TagsColumn{List: &h.Events}, h.DomainID,
			h.Hash, h.Tag, h.PeopleOnly, h.Active, h.Secret, h.CreatedAt, h.TokenID, h.ExpiresAt, schema.MaxWebhooks)
		if schema.ErrorCode(err) == schema.CodeNotFound {
			err = schema.Errorf(schema.CodeConflict, "it has %d", schema.MaxWebhooks)
		}
		return err
	})
	return wrap(err, "create webhook of account %d", h.AccountID)
}

// Webhooks implements schema.WebhookStore.
func (s *Store) Webhooks(ctx context.Context, accountID int64) ([]schema.Webhook, error) {
	hooks, err := list(ctx, s.db, webhookFields, webhooksOfAccount, accountID)
	return hooks, wrap(err, "read webhooks of account %d", accountID)
}

// Webhook implements schema.WebhookStore.
func (s *Store) Webhook(ctx context.Context, accountID, id int64) (hook schema.Webhook, err error) {
	err = get(ctx, s.db, webhookFields(&hook), webhookOfAccount, accountID, id)
	return hook, wrap(err, "read webhook %d of account %d", id, accountID)
}

// UpdateWebhook implements schema.WebhookStore.
func (s *Store) UpdateWebhook(ctx context.Context, h *schema.Webhook) error {
	updated := *h
	err := s.updateInTurn(ctx, h.AccountID, func(tx Conn) error {
		ends, err := lockToken(ctx, tx, h.TokenID)
		if err != nil {
			return err
		}
		var b Batch
		b.execOne(updateWebhook, h.AccountID, h.ID, h.URL, schema.TagsColumn{List: &h.Events}, h.DomainID, h.Hash, h.Tag,
			h.PeopleOnly, h.Active, h.UpdatedAt, h.TokenID, ends)
		b.dropDeliveries(h.ID)
		b.get(webhookFields(&updated), webhookOfAccount, h.AccountID, h.ID)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return wrap(err, "update webhook %d of account %d", h.ID, h.AccountID)
	}
	*h = updated
	return nil
}

// lockWebhook locks a webhook, unless it is off. Statements after it see what its last holder has committed.
func (b *Batch) lockWebhook(id int64) { b.rows(func(Rows) error { return nil }, lockWebhook, id) }

// dropDeliveries drops the waiting deliveries of a webhook if it is off. The batch has locked it.
func (b *Batch) dropDeliveries(webhookID int64) {
	b.exec(noteDropped, webhookID)
	b.exec(dropWaiting, webhookID)
}

// RotateSecret implements schema.WebhookStore.
func (s *Store) RotateSecret(ctx context.Context, accountID, id int64, secret string, until time.Time) error {
	var b Batch
	b.execOne(rotateSecret, accountID, id, secret, until)
	return wrap(s.sendInTurn(ctx, accountID, &b), "rotate secret of webhook %d of account %d", id, accountID)
}

// DeleteWebhook implements schema.WebhookStore.
func (s *Store) DeleteWebhook(ctx context.Context, accountID, id int64) error {
	var b Batch
	b.execOne(deleteWebhook, accountID, id)
	return wrap(s.sendInTurn(ctx, accountID, &b), "delete webhook %d of account %d", id, accountID)
}

// TestWebhook implements schema.WebhookStore.
func (s *Store) TestWebhook(ctx context.Context, accountID, id int64) error {
	var b Batch
	b.execOne(reserveTest, accountID, id, schema.MaxWebhookWaiting, schema.MaxDeliveries)
	b.exec(addTest, id, newMessage(), schema.EventTest)
	return wrap(s.sendInTurn(ctx, accountID, &b), "test webhook %d of account %d", id, accountID)
}

// Deliveries implements schema.WebhookStore.
func (s *Store) Deliveries(ctx context.Context, webhookID int64) ([]schema.Delivery, error) {
	all, err := list(ctx, s.db, deliveryFields, deliveries, webhookID, schema.MaxDeliveries)
	return all, wrap(err, "read deliveries of webhook %d", webhookID)
}

// Delivery implements schema.WebhookStore.
func (s *Store) Delivery(ctx context.Context, webhookID int64, message string) (d schema.Delivery, err error) {
	err = get(ctx, s.db, append(deliveryFields(&d), &d.Data, &d.Answer.Text), delivery, webhookID, message)
	return d, wrap(err, "read delivery %q of webhook %d", message, webhookID)
}

// ResendDelivery implements schema.WebhookStore.
func (s *Store) ResendDelivery(ctx context.Context, accountID, webhookID int64, message string) error {
	var b Batch
	b.lockWebhook(webhookID)
	b.execOne(addResent, webhookID, message)
	b.exec(resendDelivery, webhookID, message)
	return wrap(s.sendInTurn(ctx, accountID, &b), "resend delivery %q of webhook %d", message, webhookID)
}

// ClaimWebhooks implements schema.WebhookStore. It looks for webhooks first, because SQLite has one lock for all
// changes.
func (s *Store) ClaimWebhooks(
	ctx context.Context, holder string, lease time.Duration, limit int,
) (hooks []schema.Webhook, err error) {
	var work, over bool
	err = get(ctx, s.db, []any{&work, &over}, hasWork)
	if err == nil && over {
		err = s.endWebhooks(ctx)
	}
	if err != nil || !work {
		return nil, wrap(err, "look for webhooks")
	}
	var b Batch
	b.rows(func(rows Rows) (err error) {
		hooks, err = collect(rows, webhookFields)
		return err
	}, claimWebhooks, holder, lease, limit)
	err = s.db.Send(ctx, &b)
	return hooks, wrap(err, "claim webhooks")
}

// endWebhooks switches webhooks off whose token has expired.
func (s *Store) endWebhooks(ctx context.Context) error {
	ids, err := list(ctx, s.db, value[int64], webhooksToEnd)
	if err != nil {
		return err
	}
	slices.Sort(ids)
	var b Batch
	for _, id := range ids {
		b.exec(endWebhook+` AND `+isOver, id, schema.OffToken)
		b.dropDeliveries(id)
	}
	return s.db.Send(ctx, &b)
}

// WaitingDeliveries implements schema.WebhookStore. It changes something only if clicks are to be put into deliveries.
func (s *Store) WaitingDeliveries(
	ctx context.Context, accountID, webhookID int64, limit int,
) ([]schema.Delivery, error) {
	rows, err := s.db.Query(ctx, statement(waitingDeliveries, []any{webhookID, limit}))
	if err != nil {
		return nil, wrap(err, "read waiting deliveries of webhook %d", webhookID)
	}
	all, open, err := scanWaiting(rows)
	if err == nil && open {
		all, err = s.putClicks(ctx, accountID, webhookID, limit)
	}
	return all, wrap(err, "read waiting deliveries of webhook %d", webhookID)
}

// scanWaiting returns deliveries up to the first row of clicks that are not in a delivery yet. open reports whether
// there is one.
func scanWaiting(rows Rows) (all []schema.Delivery, open bool, err error) {
	var d schema.Delivery
	var clicks bool
	err = each(rows, append(deliveryFields(&d), &d.Data, &clicks), func() error {
		if open = open || clicks; !open {
			all = append(all, d)
		}
		return nil
	})
	return all, open, err
}

// NoteDelivery implements schema.WebhookStore.
func (s *Store) NoteDelivery(
	ctx context.Context, accountID, id int64, holder string, d schema.Delivery, note schema.DeliveryNote,
) (bool, error) {
	var b Batch
	b.execOne(noteAttempt, id, holder, note.Lease, note.Delivered, note.Pause, note.Off,
		note.Error)
	if note.Status() != schema.DeliveryWaiting {
		b.exec(endWaiting, id, len(d.Data), d.ID)
	}
	b.exec(setDelivery, d.ID, note.Status(), note.Error, note.Answer.Status, note.Answer.Took.Milliseconds(),
		note.Answer.Text)
	if note.Off != "" {
		b.dropDeliveries(id)
	}
	b.exec(forgetDeliveries, id, schema.MaxDeliveries)
	err := s.sendInTurn(ctx, accountID, &b)
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return false, nil
	}
	return err == nil, wrap(err, "note delivery %d of webhook %d", d.ID, id)
}

// ReleaseWebhook implements schema.WebhookStore.
func (s *Store) ReleaseWebhook(ctx context.Context, id int64, holder string) error {
	_, err := exec(ctx, s.db, releaseWebhook, id, holder)
	return wrap(err, "release webhook %d", id)
}
