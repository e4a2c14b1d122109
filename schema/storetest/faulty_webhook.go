package storetest

import (
	"context"
	"time"

	"linkstream/schema"
)

func (f FaultyDatabase) CreateWebhook(ctx context.Context, hook *schema.Webhook) error {
	return do(ctx, f.Fault, "CreateWebhook", func() error { return f.Database.CreateWebhook(ctx, hook) })
}

func (f FaultyDatabase) Webhooks(ctx context.Context, accountID int64) ([]schema.Webhook, error) {
	return one(ctx, f.Fault, "Webhooks", func() ([]schema.Webhook, error) { return f.Database.Webhooks(ctx, accountID) })
}

func (f FaultyDatabase) Webhook(ctx context.Context, accountID, id int64) (schema.Webhook, error) {
	return one(ctx, f.Fault, "Webhook", func() (schema.Webhook, error) { return f.Database.Webhook(ctx, accountID, id) })
}

func (f FaultyDatabase) UpdateWebhook(ctx context.Context, hook schema.Webhook) error {
	return do(ctx, f.Fault, "UpdateWebhook", func() error { return f.Database.UpdateWebhook(ctx, hook) })
}

func (f FaultyDatabase) RotateSecret(ctx context.Context, accountID, id int64, secret string, until time.Time) error {
	return do(ctx, f.Fault, "RotateSecret",
		func() error { return f.Database.RotateSecret(ctx, accountID, id, secret, until) })
}

func (f FaultyDatabase) DeleteWebhook(ctx context.Context, accountID, id int64) error {
	return do(ctx, f.Fault, "DeleteWebhook", func() error { return f.Database.DeleteWebhook(ctx, accountID, id) })
}

func (f FaultyDatabase) TestWebhook(ctx context.Context, accountID, id int64) error {
	return do(ctx, f.Fault, "TestWebhook", func() error { return f.Database.TestWebhook(ctx, accountID, id) })
}

func (f FaultyDatabase) Deliveries(ctx context.Context, webhookID int64) ([]schema.Delivery, error) {
	return one(ctx, f.Fault, "Deliveries", func() ([]schema.Delivery,
		error) {
		return f.Database.Deliveries(ctx, webhookID)
	})
}

func (f FaultyDatabase) ResendDelivery(ctx context.Context, webhookID int64, message string) error {
	return do(ctx, f.Fault, "ResendDelivery", func() error { return f.Database.ResendDelivery(ctx, webhookID, message) })
}

func (f FaultyDatabase) ClaimWebhooks(ctx context.Context, holder string, lease time.Duration,
	limit int) ([]schema.Webhook, error) {
	return one(ctx, f.Fault, "ClaimWebhooks",
		func() ([]schema.Webhook, error) { return f.Database.ClaimWebhooks(ctx, holder, lease, limit) })
}

func (f FaultyDatabase) WaitingDeliveries(ctx context.Context, webhookID int64, limit int) ([]schema.Delivery, error) {
	return one(ctx, f.Fault, "WaitingDeliveries",
		func() ([]schema.Delivery, error) { return f.Database.WaitingDeliveries(ctx, webhookID, limit) })
}

func (f FaultyDatabase) NoteDelivery(ctx context.Context, webhookID int64, holder string, delivery schema.Delivery,
	note schema.DeliveryNote) (bool, error) {
	return one(ctx, f.Fault, "NoteDelivery",
		func() (bool, error) { return f.Database.NoteDelivery(ctx, webhookID, holder, delivery, note) })
}

func (f FaultyDatabase) ReleaseWebhook(ctx context.Context, webhookID int64, holder string) error {
	return do(ctx, f.Fault, "ReleaseWebhook", func() error { return f.Database.ReleaseWebhook(ctx, webhookID, holder) })
}

func (f FaultyDatabase) ClickHookAccounts(ctx context.Context) ([]int64, error) {
	return one(ctx, f.Fault, "ClickHookAccounts", func() ([]int64, error) { return f.Database.ClickHookAccounts(ctx) })
}

func (f FaultyDatabase) QueuedPosition(ctx context.Context, partition int) (schema.Position, error) {
	return one(ctx, f.Fault, "QueuedPosition",
		func() (schema.Position, error) { return f.Database.QueuedPosition(ctx, partition) })
}

func (f FaultyDatabase) QueuedMarks(ctx context.Context, lanes []schema.Lane) ([]uint64, error) {
	return one(ctx, f.Fault, "QueuedMarks", func() ([]uint64, error) { return f.Database.QueuedMarks(ctx, lanes) })
}

func (f FaultyDatabase) QueueClicks(ctx context.Context, batch *schema.ClickBatch) error {
	return do(ctx, f.Fault, "QueueClicks", func() error { return f.Database.QueueClicks(ctx, batch) })
}
