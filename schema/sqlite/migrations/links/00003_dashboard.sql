-- +goose Up
CREATE TABLE sessions (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    digest     BLOB    NOT NULL UNIQUE,
    user_agent TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;

CREATE INDEX sessions_of_account ON sessions (account_id);

-- The key begins with the window, so that it also finds the old rows.
CREATE TABLE attempts (
    begins_at INTEGER NOT NULL,
    key       BLOB    NOT NULL,
    attempts  INTEGER NOT NULL,
    PRIMARY KEY (begins_at, key)
) STRICT, WITHOUT ROWID;

ALTER TABLE tokens ADD COLUMN used_at INTEGER;
CREATE INDEX tokens_of_account ON tokens (account_id, id) WHERE revoked_at IS NULL;

CREATE INDEX domains_of_account ON domains (account_id, host);
