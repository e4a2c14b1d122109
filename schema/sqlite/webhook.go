package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"linkstream/schema"
)

const (
	webhookColumns = `id, account_id, url, events, domain_id, hash, tag, people_only, active, off_reason, secret, old_secret,
		old_secret_until, created_at, updated_at, waiting, dropped, failing_since, next_at`
	createWebhook = `
	INSERT INTO webhooks (account_id, url, events, domain_id, hash, tag, people_only, active, secret, created_at, updated_at, next_at,
		clicks_since)
	SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?10, ?12 WHERE (SELECT count(*) FROM webhooks WHERE account_id = ?1) < ?11`
	webhooksOfAccount = `SELECT ` + webhookColumns + ` FROM webhooks WHERE account_id = ? ORDER BY id`
	webhookOfAccount  = `SELECT ` + webhookColumns + ` FROM webhooks WHERE account_id = ? AND id = ?`
	updateWebhook     = `
	UPDATE webhooks SET url = ?3, events = ?4, domain_id = ?5, hash = ?6, tag = ?7, people_only = ?8, active = ?9, updated_at = ?10,
		off_reason = '', failing_since = NULL, next_at = ?10, holder = '', clicks_since = iif(` + hearsOfClicks + `, clicks_since, ?11)
	WHERE account_id = ?1 AND id = ?2`
	rotateSecret = `
	UPDATE webhooks SET old_secret = secret, old_secret_until = ?4, secret = ?3 WHERE account_id = ?1 AND id = ?2`
	deleteWebhook = `DELETE FROM webhooks WHERE account_id = ? AND id = ?`
	dropWaiting   = `DELETE FROM webhook_deliveries WHERE webhook_id = ? AND status = 'waiting'`
	noteDropped   = `UPDATE webhooks SET dropped = dropped + ?2, waiting = 0 WHERE id = ?1`
	roomForTest   = `
	UPDATE webhooks SET waiting = waiting + 2 WHERE account_id = ?1 AND id = ?2 AND active AND waiting + 2 <= ?3
		AND (SELECT count(*) FROM (SELECT 1 FROM webhook_deliveries WHERE webhook_id = ?2 AND status = 'waiting' LIMIT ?4)) < ?4`
	addTest = `
	INSERT INTO webhook_deliveries (webhook_id, message, event, at, data)
	VALUES (?, 'msg_' || lower(hex(randomblob(16))), ?, ?, '{}')`
	deliveries = `
	SELECT id, message, event, at, status, attempts, error FROM webhook_deliveries WHERE webhook_id = ? AND clicks = 0
	ORDER BY id DESC LIMIT ?`
	resendDelivery = `
	UPDATE webhook_deliveries SET status = 'waiting' WHERE webhook_id = ? AND message = ? AND status <> 'waiting'
		AND EXISTS (SELECT 1 FROM webhooks WHERE id = webhook_id AND active) RETURNING octet_length(data)`
	hasDelivery = `
	SELECT 1 FROM webhook_deliveries WHERE webhook_id = ? AND message = ? AND clicks = 0
		AND EXISTS (SELECT 1 FROM webhooks WHERE id = webhook_id AND active)`
	addWaiting = `UPDATE webhooks SET waiting = waiting + ?2 WHERE id = ?1`

	canSend = `waiting > 0 AND next_at <= ?1 AND active AND coalesce(leased_until, 0) <= ?1
		AND NOT (SELECT suspended FROM accounts WHERE id = account_id)`
	hasWork       = `SELECT EXISTS (SELECT 1 FROM webhooks WHERE ` + canSend + `)`
	claimWebhooks = `
	UPDATE webhooks SET holder = ?2, leased_until = ?3, next_at = ?1
	WHERE id IN (SELECT id FROM webhooks WHERE ` + canSend + ` ORDER BY next_at LIMIT ?4) RETURNING ` + webhookColumns
	waitingDeliveries = `
	SELECT id, message, event, at, data, attempts, clicks > 0 FROM webhook_deliveries WHERE webhook_id = ? AND status = 'waiting'
	ORDER BY id LIMIT ?`
	noteAttempt = `
	UPDATE webhooks SET leased_until = ?3, failing_since = iif(?4, NULL, coalesce(failing_since, ?5)), next_at = ?6,
		active = active AND ?7 = '', off_reason = ?7
	WHERE id = ?1 AND holder = ?2`
	setDelivery = `
	UPDATE webhook_deliveries SET status = ?2, attempts = attempts + 1, error = ?3 WHERE id = ?1 AND status = 'waiting'`
	forgetDeliveries = `
	DELETE FROM webhook_deliveries WHERE webhook_id = ?1 AND status <> 'waiting' AND id <= (
		SELECT id FROM webhook_deliveries WHERE webhook_id = ?1 AND status <> 'waiting' ORDER BY id DESC LIMIT 1 OFFSET ?2)`
	delivered      = `UPDATE webhooks SET waiting = max(0, waiting - ?2) WHERE id = ?1`
	releaseWebhook = `UPDATE webhooks SET holder = '', leased_until = NULL WHERE id = ? AND holder = ?`
)

func scanWebhook(row interface{ Scan(...any) error }) (h schema.Webhook, err error) {
	err = row.Scan(&h.ID, &h.AccountID, &h.URL, schema.TagsColumn{List: &h.Events}, &h.DomainID, &h.Hash, &h.Tag, &h.PeopleOnly, &h.Active,
		&h.OffReason, &h.Secret, &h.OldSecret, unixMillis{&h.OldSecretUntil}, unixMillis{&h.CreatedAt}, unixMillis{&h.UpdatedAt},
		&h.Waiting, &h.Dropped, unixMillis{&h.FailingSince}, unixMillis{&h.NextAt})
	return h, err
}

// scanWebhooks scans all rows. Its arguments are the results of a query.
func scanWebhooks(rows *sql.Rows, err error) (hooks []schema.Webhook, _ error) {
	err = forEachRow(rows, err, func() error {
		hook, err := scanWebhook(rows)
		hooks = append(hooks, hook)
		return err
	})
	return hooks, err
}

// CreateWebhook implements schema.WebhookStore.
func (s *Store) CreateWebhook(ctx context.Context, h *schema.Webhook) error {
	now := time.Now()
	result, err := s.db.write.ExecContext(ctx, createWebhook, h.AccountID, h.URL, schema.TagsColumn{List: &h.Events}, h.DomainID, h.Hash,
		h.Tag, h.PeopleOnly, h.Active, h.Secret, unixMillis{&h.CreatedAt}, schema.MaxWebhooks, unixMillis{&now})
	if err = oneRow(result, err); errors.Is(err, sql.ErrNoRows) {
		err = schema.Errorf(schema.CodeConflict, "it has %d", schema.MaxWebhooks)
	}
	if err == nil {
		h.ID, err = result.LastInsertId()
	}
	return wrap(err, "create webhook of account %d", h.AccountID)
}

// Webhooks implements schema.WebhookStore.
func (s *Store) Webhooks(ctx context.Context, accountID int64) ([]schema.Webhook, error) {
	hooks, err := scanWebhooks(s.db.query(ctx, webhooksOfAccount, accountID))
	return hooks, wrap(err, "read webhooks of account %d", accountID)
}

// Webhook implements schema.WebhookStore.
func (s *Store) Webhook(ctx context.Context, accountID, id int64) (schema.Webhook, error) {
	hook, err := scanWebhook(s.db.queryRow(ctx, webhookOfAccount, accountID, id))
	return hook, wrap(err, "read webhook %d of account %d", id, accountID)
}

// UpdateWebhook implements schema.WebhookStore.
func (s *Store) UpdateWebhook(ctx context.Context, h schema.Webhook) error {
	now := time.Now()
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		err := oneRow(tx.ExecContext(ctx, updateWebhook, h.AccountID, h.ID, h.URL, schema.TagsColumn{List: &h.Events}, h.DomainID, h.Hash,
			h.Tag, h.PeopleOnly, h.Active, unixMillis{&h.UpdatedAt}, unixMillis{&now}))
		if err == nil && !h.Active {
			err = drop(ctx, tx, h.ID)
		}
		return err
	})
	return wrap(err, "update webhook %d of account %d", h.ID, h.AccountID)
}

// drop drops the deliveries of a webhook that wait.
func drop(ctx context.Context, tx *sql.Tx, id int64) error {
	result, err := tx.ExecContext(ctx, dropWaiting, id)
	if err != nil {
		return err
	}
	dropped, err := result.RowsAffected()
	if err == nil {
		_, err = tx.ExecContext(ctx, noteDropped, id, dropped)
	}
	return err
}

// RotateSecret implements schema.WebhookStore.
func (s *Store) RotateSecret(ctx context.Context, accountID, id int64, secret string, until time.Time) error {
	err := oneRow(s.db.write.ExecContext(ctx, rotateSecret, accountID, id, secret, unixMillis{&until}))
	return wrap(err, "rotate secret of webhook %d of account %d", id, accountID)
}

// DeleteWebhook implements schema.WebhookStore.
func (s *Store) DeleteWebhook(ctx context.Context, accountID, id int64) error {
	err := oneRow(s.db.write.ExecContext(ctx, deleteWebhook, accountID, id))
	return wrap(err, "delete webhook %d of account %d", id, accountID)
}

// TestWebhook implements schema.WebhookStore.
func (s *Store) TestWebhook(ctx context.Context, accountID, id int64) error {
	now := time.Now()
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		err := oneRow(tx.ExecContext(ctx, roomForTest, accountID, id, schema.MaxWebhookWaiting, schema.MaxDeliveries))
		if err == nil {
			_, err = tx.ExecContext(ctx, addTest, id, schema.EventTest, unixMillis{&now})
		}
		return err
	})
	return wrap(err, "test webhook %d of account %d", id, accountID)
}

// Deliveries implements schema.WebhookStore.
func (s *Store) Deliveries(ctx context.Context, webhookID int64) (all []schema.Delivery, err error) {
	rows, err := s.db.query(ctx, deliveries, webhookID, schema.MaxDeliveries)
	err = forEachRow(rows, err, func() error {
		var d schema.Delivery
		err := rows.Scan(&d.ID, &d.Message, &d.Event, unixMillis{&d.At}, &d.Status, &d.Attempts, &d.Error)
		all = append(all, d)
		return err
	})
	return all, wrap(err, "read deliveries of webhook %d", webhookID)
}

// ResendDelivery implements schema.WebhookStore.
func (s *Store) ResendDelivery(ctx context.Context, webhookID int64, message string) error {
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		var size int64
		err := tx.QueryRowContext(ctx, resendDelivery, webhookID, message).Scan(&size)
		if errors.Is(err, sql.ErrNoRows) {
			var has bool
			return tx.QueryRowContext(ctx, hasDelivery, webhookID, message).Scan(&has)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, addWaiting, webhookID, size)
		}
		return err
	})
	return wrap(err, "resend delivery %q of webhook %d", message, webhookID)
}

// ClaimWebhooks implements schema.WebhookStore. It looks before it takes the write lock.
func (s *Store) ClaimWebhooks(ctx context.Context, holder string, lease time.Duration, limit int) (hooks []schema.Webhook, err error) {
	now, work := time.Now(), false
	if err := s.db.queryRow(ctx, hasWork, unixMillis{&now}).Scan(&work); err != nil || !work {
		return nil, wrap(err, "look for webhooks")
	}
	until := now.Add(lease)
	err = s.db.update(ctx, func(tx *sql.Tx) (err error) {
		hooks, err = scanWebhooks(tx.QueryContext(ctx, claimWebhooks, unixMillis{&now}, holder, unixMillis{&until}, limit))
		return err
	})
	return hooks, wrap(err, "claim webhooks")
}

// WaitingDeliveries implements schema.WebhookStore. It takes the write lock only if clicks are to be put into deliveries.
func (s *Store) WaitingDeliveries(ctx context.Context, webhookID int64, limit int) ([]schema.Delivery, error) {
	rows, err := s.db.query(ctx, waitingDeliveries, webhookID, limit)
	all, open, err := scanWaiting(rows, err)
	if err == nil && open {
		err = s.db.update(ctx, func(tx *sql.Tx) error {
			err := putClicks(ctx, tx, webhookID, limit)
			if err == nil {
				rows, err = tx.QueryContext(ctx, waitingDeliveries, webhookID, limit)
				all, _, err = scanWaiting(rows, err)
			}
			return err
		})
	}
	return all, wrap(err, "read waiting deliveries of webhook %d", webhookID)
}

// scanWaiting scans deliveries up to the first row of clicks that wait to be put into one, and reports whether there is one.
func scanWaiting(rows *sql.Rows, err error) (all []schema.Delivery, open bool, _ error) {
	err = forEachRow(rows, err, func() error {
		d, clicks := schema.Delivery{Status: schema.DeliveryWaiting}, false
		err := rows.Scan(&d.ID, &d.Message, &d.Event, unixMillis{&d.At}, &d.Data, &d.Attempts, &clicks)
		if open = open || clicks; !open {
			all = append(all, d)
		}
		return err
	})
	return all, open, err
}

// NoteDelivery implements schema.WebhookStore.
func (s *Store) NoteDelivery(ctx context.Context, id int64, holder string, d schema.Delivery, note schema.DeliveryNote) (bool, error) {
	now := time.Now()
	until, next := now.Add(note.Lease), now.Add(note.Pause)
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		err := oneRow(tx.ExecContext(ctx, noteAttempt, id, holder, unixMillis{&until}, note.Delivered, unixMillis{&now}, unixMillis{&next}, note.Off))
		if err != nil {
			return err
		}
		changed, err := tx.ExecContext(ctx, setDelivery, d.ID, note.Status(), note.Error)
		if err == nil && note.Status() != schema.DeliveryWaiting && oneRow(changed, nil) == nil {
			_, err = tx.ExecContext(ctx, delivered, id, len(d.Data))
		}
		if err == nil && note.Off != "" {
			err = drop(ctx, tx, id)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, forgetDeliveries, id, schema.MaxDeliveries)
		}
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, wrap(err, "note delivery %d of webhook %d", d.ID, id)
}

// ReleaseWebhook implements schema.WebhookStore.
func (s *Store) ReleaseWebhook(ctx context.Context, id int64, holder string) error {
	_, err := s.db.write.ExecContext(ctx, releaseWebhook, id, holder)
	return wrap(err, "release webhook %d", id)
}
