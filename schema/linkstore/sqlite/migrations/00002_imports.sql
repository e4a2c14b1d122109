-- +goose Up
-- A file is with the process that received it. Its state is here, so that every process can show it.
DROP TABLE upload_parts;
DROP TABLE uploads;

CREATE TABLE imports (
    account_id INTEGER NOT NULL PRIMARY KEY REFERENCES accounts (id),
    id         TEXT    NOT NULL,
    status     TEXT    NOT NULL, -- JSON
    errors     TEXT    NOT NULL, -- CSV
    requested  INTEGER NOT NULL CHECK (requested IN (0, 1)),
    updated_at INTEGER NOT NULL
) STRICT;
