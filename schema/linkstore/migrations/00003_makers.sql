-- +goose Up
-- Shared reports and webhooks end with the token that made them.
ALTER TABLE shares ADD COLUMN token_id {integer} NOT NULL DEFAULT 0; -- 0: none
ALTER TABLE webhooks ADD COLUMN token_id {integer} NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN expires_at {time}; -- when the token expires

CREATE INDEX webhooks_to_end ON webhooks (expires_at) WHERE active AND expires_at IS NOT NULL;
