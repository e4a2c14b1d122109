-- +goose Up
-- Calls that their clients may repeat, with the answers. Both digests are SHA-256.
CREATE TABLE idempotency_keys (
    account_id bigint      NOT NULL REFERENCES accounts (id),
    key        bytea       NOT NULL,
    number     bigint      NOT NULL, -- grows by 1 with each key of the account
    request    bytea       NOT NULL,
    answer     bytea       NOT NULL,
    used_at    timestamptz NOT NULL,
    PRIMARY KEY (account_id, key),
    UNIQUE (account_id, number)
);
ALTER TABLE idempotency_keys ALTER COLUMN answer SET STORAGE EXTERNAL; -- it is compressed

CREATE INDEX idempotency_keys_by_age ON idempotency_keys (used_at);
