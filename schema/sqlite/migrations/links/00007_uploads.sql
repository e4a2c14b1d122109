-- +goose Up
-- Files of links that accounts import, one per account.
CREATE TABLE uploads (
    id           TEXT    NOT NULL PRIMARY KEY,
    account_id   INTEGER NOT NULL UNIQUE REFERENCES accounts (id),
    file_name    TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    status       TEXT    NOT NULL,
    errors       TEXT    NOT NULL,
    holder       TEXT    NOT NULL,
    leased_until INTEGER -- NULL: nobody works on it
) STRICT;

CREATE TABLE upload_parts (
    upload_id TEXT    NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
    number    INTEGER NOT NULL,
    content   BLOB    NOT NULL,
    PRIMARY KEY (upload_id, number)
) STRICT;
