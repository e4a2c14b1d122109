package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

const (
	webhookColumns = `w.id, w.account_id, w.url, w.events, w.domain_id, w.hash, w.tag, w.people_only, w.active, w.off_reason, w.secret,
		w.old_secret, coalesce(w.old_secret_until, ` + zeroTime + `), w.created_at, w.updated_at, w.waiting, w.dropped,
		coalesce(w.failing_since, ` + zeroTime + `), w.next_at`
	// createWebhook locks the account, so that concurrent calls see each other's webhooks.
	lockAccount   = `SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE`
	createWebhook = `
	INSERT INTO webhooks (account_id, url, events, domain_id, hash, tag, people_only, active, secret, created_at, updated_at, next_at,
		clicks_since)
	SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, clock_timestamp(), clock_timestamp() WHERE (SELECT count(*) FROM webhooks WHERE account_id = $1) < $11
	RETURNING id`
	webhooksOfAccount = `SELECT ` + webhookColumns + ` FROM webhooks w WHERE account_id = $1 ORDER BY id`
	webhookOfAccount  = `SELECT ` + webhookColumns + ` FROM webhooks w WHERE account_id = $1 AND id = $2`
	updateWebhook     = `
	UPDATE webhooks SET url = $3, events = $4, domain_id = $5, hash = $6, tag = $7, people_only = $8, active = $9, updated_at = $10,
		off_reason = '', failing_since = NULL, next_at = clock_timestamp(), holder = '',
		clicks_since = CASE WHEN ` + hearsOfClicks + ` THEN clicks_since ELSE clock_timestamp() END
	WHERE account_id = $1 AND id = $2`
	rotateSecret = `
	UPDATE webhooks SET old_secret = secret, old_secret_until = $4, secret = $3 WHERE account_id = $1 AND id = $2`
	deleteWebhook = `DELETE FROM webhooks WHERE account_id = $1 AND id = $2`
	dropWaiting   = `DELETE FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'waiting'`
	noteDropped   = `UPDATE webhooks SET dropped = dropped + $2, waiting = 0 WHERE id = $1`
	testWebhook   = `
	WITH hook AS (
		UPDATE webhooks SET waiting = waiting + 2 WHERE account_id = $1 AND id = $2 AND active AND waiting + 2 <= $3
			AND (SELECT count(*) FROM (SELECT FROM webhook_deliveries WHERE webhook_id = $2 AND status = 'waiting' LIMIT $5) AS first) < $5
		RETURNING id)
	INSERT INTO webhook_deliveries (webhook_id, message, event, at, data)
	SELECT id, 'msg_' || replace(gen_random_uuid()::text, '-', ''), $4, clock_timestamp(), '{}' FROM hook`
	deliveries = `
	SELECT id, message, event, at, '', status, attempts, error, clicks FROM webhook_deliveries WHERE webhook_id = $1 AND clicks = 0
	ORDER BY id DESC LIMIT $2`
	// resendDelivery locks the webhook first, as all transactions do.
	lockWebhook    = `SELECT FROM webhooks WHERE id = $1 AND active FOR NO KEY UPDATE`
	resendDelivery = `
	WITH again AS (
		UPDATE webhook_deliveries SET status = 'waiting' WHERE webhook_id = $1 AND message = $2 AND status <> 'waiting' RETURNING data)
	UPDATE webhooks SET waiting = waiting + octet_length(data) FROM again WHERE id = $1`
	hasDelivery = `SELECT FROM webhook_deliveries WHERE webhook_id = $1 AND message = $2 AND clicks = 0`

	claimWebhooks = `
	WITH ready AS (
		SELECT id FROM webhooks w WHERE waiting > 0 AND next_at <= clock_timestamp() AND active
			AND (leased_until IS NULL OR leased_until <= clock_timestamp())
			AND NOT (SELECT suspended FROM accounts WHERE id = w.account_id)
		ORDER BY next_at LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED)
	UPDATE webhooks w SET holder = $1, leased_until = clock_timestamp() + $2, next_at = clock_timestamp()
	FROM ready WHERE w.id = ready.id RETURNING ` + webhookColumns
	waitingDeliveries = `
	SELECT id, message, event, at, data, status, attempts, error, clicks FROM webhook_deliveries
	WHERE webhook_id = $1 AND status = 'waiting' ORDER BY id LIMIT $2`
	noteAttempt = `
	UPDATE webhooks SET leased_until = clock_timestamp() + $3::interval, next_at = clock_timestamp() + $5::interval,
		failing_since = CASE WHEN NOT $4 THEN coalesce(failing_since, clock_timestamp()) END,
		active = active AND $6 = '', off_reason = $6
	WHERE id = $1 AND holder = $2`
	setDelivery = `
	WITH changed AS (
		UPDATE webhook_deliveries SET status = $3, attempts = attempts + 1, error = $4 WHERE id = $2 AND status = 'waiting'
		RETURNING data)
	UPDATE webhooks SET waiting = greatest(0, waiting - octet_length(data)) FROM changed WHERE id = $1 AND $3 <> 'waiting'`
	forgetDeliveries = `
	DELETE FROM webhook_deliveries WHERE webhook_id = $1 AND status <> 'waiting' AND id <= (
		SELECT id FROM webhook_deliveries WHERE webhook_id = $1 AND status <> 'waiting' ORDER BY id DESC LIMIT 1 OFFSET $2)`
	releaseWebhook = `UPDATE webhooks SET holder = '', leased_until = NULL WHERE id = $1 AND holder = $2`
)

func scanWebhook(row pgx.CollectableRow) (h schema.Webhook, err error) {
	err = row.Scan(&h.ID, &h.AccountID, &h.URL, schema.TagsColumn{List: &h.Events}, &h.DomainID, &h.Hash, &h.Tag, &h.PeopleOnly, &h.Active,
		&h.OffReason, &h.Secret, &h.OldSecret, &h.OldSecretUntil, &h.CreatedAt, &h.UpdatedAt, &h.Waiting, &h.Dropped, &h.FailingSince, &h.NextAt)
	for _, t := range []*time.Time{&h.OldSecretUntil, &h.CreatedAt, &h.UpdatedAt, &h.FailingSince, &h.NextAt} {
		*t = t.UTC()
	}
	return h, err
}

// CreateWebhook implements schema.WebhookStore.
func (s *Store) CreateWebhook(ctx context.Context, h *schema.Webhook) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := oneRow(tx.Exec(ctx, lockAccount, h.AccountID)); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, createWebhook, h.AccountID, h.URL, schema.TagsColumn{List: &h.Events}, h.DomainID, h.Hash, h.Tag, h.PeopleOnly,
			h.Active, h.Secret, h.CreatedAt, schema.MaxWebhooks).Scan(&h.ID)
		if errors.Is(err, pgx.ErrNoRows) {
			err = schema.Errorf(schema.CodeConflict, "it has %d", schema.MaxWebhooks)
		}
		return err
	})
	return wrap(err, "create webhook of account %d", h.AccountID)
}

// Webhooks implements schema.WebhookStore.
func (s *Store) Webhooks(ctx context.Context, accountID int64) ([]schema.Webhook, error) {
	rows, _ := s.pool.Query(ctx, webhooksOfAccount, accountID) // CollectRows returns the error
	hooks, err := pgx.CollectRows(rows, scanWebhook)
	return hooks, wrap(err, "read webhooks of account %d", accountID)
}

// Webhook implements schema.WebhookStore.
func (s *Store) Webhook(ctx context.Context, accountID, id int64) (schema.Webhook, error) {
	rows, _ := s.pool.Query(ctx, webhookOfAccount, accountID, id) // CollectOneRow returns the error
	hook, err := pgx.CollectOneRow(rows, scanWebhook)
	return hook, wrap(err, "read webhook %d of account %d", id, accountID)
}

// UpdateWebhook implements schema.WebhookStore.
func (s *Store) UpdateWebhook(ctx context.Context, h schema.Webhook) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		err := oneRow(tx.Exec(ctx, updateWebhook, h.AccountID, h.ID, h.URL, schema.TagsColumn{List: &h.Events}, h.DomainID, h.Hash, h.Tag,
			h.PeopleOnly, h.Active, h.UpdatedAt))
		if err == nil && !h.Active {
			err = drop(ctx, tx, h.ID)
		}
		return err
	})
	return wrap(err, "update webhook %d of account %d", h.ID, h.AccountID)
}

// drop drops the deliveries of a webhook that wait. The transaction has locked the webhook.
func drop(ctx context.Context, tx pgx.Tx, id int64) error {
	dropped, err := tx.Exec(ctx, dropWaiting, id)
	if err == nil {
		_, err = tx.Exec(ctx, noteDropped, id, dropped.RowsAffected())
	}
	return err
}

// RotateSecret implements schema.WebhookStore.
func (s *Store) RotateSecret(ctx context.Context, accountID, id int64, secret string, until time.Time) error {
	err := oneRow(s.pool.Exec(ctx, rotateSecret, accountID, id, secret, until))
	return wrap(err, "rotate secret of webhook %d of account %d", id, accountID)
}

// DeleteWebhook implements schema.WebhookStore.
func (s *Store) DeleteWebhook(ctx context.Context, accountID, id int64) error {
	err := oneRow(s.pool.Exec(ctx, deleteWebhook, accountID, id))
	return wrap(err, "delete webhook %d of account %d", id, accountID)
}

// TestWebhook implements schema.WebhookStore.
func (s *Store) TestWebhook(ctx context.Context, accountID, id int64) error {
	err := oneRow(s.pool.Exec(ctx, testWebhook, accountID, id, schema.MaxWebhookWaiting, schema.EventTest, schema.MaxDeliveries))
	return wrap(err, "test webhook %d of account %d", id, accountID)
}

// Deliveries implements schema.WebhookStore.
func (s *Store) Deliveries(ctx context.Context, webhookID int64) ([]schema.Delivery, error) {
	rows, _ := s.pool.Query(ctx, deliveries, webhookID, schema.MaxDeliveries) // scanDeliveries returns the error
	all, _, err := scanDeliveries(rows)
	return all, wrap(err, "read deliveries of webhook %d", webhookID)
}

// ResendDelivery implements schema.WebhookStore.
func (s *Store) ResendDelivery(ctx context.Context, webhookID int64, message string) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := oneRow(tx.Exec(ctx, lockWebhook, webhookID)); err != nil {
			return err
		}
		if err := oneRow(tx.Exec(ctx, resendDelivery, webhookID, message)); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return oneRow(tx.Exec(ctx, hasDelivery, webhookID, message))
	})
	return wrap(err, "resend delivery %q of webhook %d", message, webhookID)
}

// ClaimWebhooks implements schema.WebhookStore.
func (s *Store) ClaimWebhooks(ctx context.Context, holder string, lease time.Duration, limit int) ([]schema.Webhook, error) {
	rows, _ := s.pool.Query(ctx, claimWebhooks, holder, lease, limit) // CollectRows returns the error
	hooks, err := pgx.CollectRows(rows, scanWebhook)
	return hooks, wrap(err, "claim webhooks")
}

// WaitingDeliveries implements schema.WebhookStore.
func (s *Store) WaitingDeliveries(ctx context.Context, webhookID int64, limit int) ([]schema.Delivery, error) {
	rows, _ := s.pool.Query(ctx, waitingDeliveries, webhookID, limit) // scanDeliveries returns the error
	all, open, err := scanDeliveries(rows)
	if err == nil && open {
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			err := putClicks(ctx, tx, webhookID, limit)
			if err == nil {
				all, _, err = scanDeliveries(query(ctx, tx, waitingDeliveries, webhookID, limit))
			}
			return err
		})
	}
	return all, wrap(err, "read waiting deliveries of webhook %d", webhookID)
}

// scanDeliveries scans deliveries up to the first row of clicks that wait to be put into one, and reports whether there is one.
func scanDeliveries(rows pgx.Rows) (all []schema.Delivery, open bool, err error) {
	var d schema.Delivery
	var clicks int
	columns := []any{&d.ID, &d.Message, &d.Event, &d.At, &d.Data, &d.Status, &d.Attempts, &d.Error, &clicks}
	_, err = pgx.ForEachRow(rows, columns, func() error {
		if open = open || clicks > 0; !open {
			d.At = d.At.UTC()
			all = append(all, d)
		}
		return nil
	})
	return all, open, err
}

// NoteDelivery implements schema.WebhookStore.
func (s *Store) NoteDelivery(ctx context.Context, id int64, holder string, d schema.Delivery, note schema.DeliveryNote) (bool, error) {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		err := oneRow(tx.Exec(ctx, noteAttempt, id, holder, note.Lease, note.Delivered, note.Pause, note.Off))
		if err == nil {
			_, err = tx.Exec(ctx, setDelivery, id, d.ID, note.Status(), note.Error)
		}
		if err == nil && note.Off != "" {
			err = drop(ctx, tx, id)
		}
		if err == nil {
			_, err = tx.Exec(ctx, forgetDeliveries, id, schema.MaxDeliveries)
		}
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, wrap(err, "note delivery %d of webhook %d", d.ID, id)
}

// ReleaseWebhook implements schema.WebhookStore.
func (s *Store) ReleaseWebhook(ctx context.Context, id int64, holder string) error {
	_, err := s.pool.Exec(ctx, releaseWebhook, id, holder)
	return wrap(err, "release webhook %d", id)
}
