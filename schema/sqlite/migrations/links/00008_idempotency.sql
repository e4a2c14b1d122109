-- +goose Up
-- Calls that their clients may repeat, with the answers. Both digests are SHA-256.
CREATE TABLE idempotency_keys (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    key        BLOB    NOT NULL,
    number     INTEGER NOT NULL, -- grows by 1 with each key of the account
    request    BLOB    NOT NULL,
    answer     BLOB    NOT NULL,
    used_at    INTEGER NOT NULL,
    PRIMARY KEY (account_id, key),
    UNIQUE (account_id, number)
) STRICT;

CREATE INDEX idempotency_keys_by_age ON idempotency_keys (used_at);
