-- +goose Up
-- The last attempt at a delivery, and the last one of a webhook. Programs of 1.0.0 change none of it.
ALTER TABLE webhook_deliveries ADD COLUMN attempted_at {time};
ALTER TABLE webhook_deliveries ADD COLUMN took {integer} NOT NULL DEFAULT 0; -- milliseconds
ALTER TABLE webhook_deliveries ADD COLUMN answer_status {integer} NOT NULL DEFAULT 0; -- of HTTP; 0: no answer
ALTER TABLE webhook_deliveries ADD COLUMN answer TEXT NOT NULL DEFAULT ''; -- its first bytes
ALTER TABLE webhooks ADD COLUMN attempted_at {time};
ALTER TABLE webhooks ADD COLUMN last_error TEXT NOT NULL DEFAULT '';
