-- Times are milliseconds since 1970-01-01T00:00:00Z. Other databases refer to rows by their ids: AUTOINCREMENT never uses
-- an id again, even after its row is deleted.

-- +goose Up
CREATE TABLE accounts (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    email         TEXT    NOT NULL UNIQUE,
    password_hash TEXT    NOT NULL,
    suspended     INTEGER NOT NULL CHECK (suspended IN (0, 1)),
    link_count    INTEGER NOT NULL DEFAULT 0, -- the ordinal of the account's newest link
    created_at    INTEGER NOT NULL
) STRICT;

CREATE TABLE tokens (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    name       TEXT    NOT NULL,
    prefix     TEXT    NOT NULL,
    digest     BLOB    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

CREATE TABLE domains (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id  INTEGER NOT NULL REFERENCES accounts (id),
    host        TEXT    NOT NULL,
    challenge   TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    verified_at INTEGER,
    UNIQUE (host, account_id)
) STRICT;

-- Many accounts may claim a host, and one may have it verified.
CREATE UNIQUE INDEX domains_verified ON domains (host) WHERE verified_at IS NOT NULL;

CREATE TABLE links (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    domain_id  INTEGER NOT NULL, -- 0: the default domain, which has no row
    hash       TEXT    NOT NULL,
    url        TEXT    NOT NULL,
    active     INTEGER NOT NULL CHECK (active IN (0, 1)),
    ordinal    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (domain_id, hash),
    UNIQUE (account_id, ordinal)
) STRICT;

CREATE INDEX links_of_account ON links (account_id, hash);
