-- +goose Up
CREATE TABLE sessions (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id bigint      NOT NULL REFERENCES accounts (id),
    digest     bytea       NOT NULL UNIQUE,
    user_agent text        NOT NULL,
    created_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 70); -- a row changes while the session is used: leave room for the new version on the same page

CREATE INDEX sessions_of_account ON sessions (account_id);

-- The key begins with the window, so that it also finds the old rows.
CREATE TABLE attempts (
    begins_at timestamptz NOT NULL,
    key       bytea       NOT NULL,
    attempts  bigint      NOT NULL,
    PRIMARY KEY (begins_at, key)
) WITH (fillfactor = 70);

ALTER TABLE tokens ADD COLUMN used_at timestamptz;
ALTER TABLE tokens SET (fillfactor = 70);
CREATE INDEX tokens_of_account ON tokens (account_id, id) WHERE revoked_at IS NULL;

-- Ordered by bytes as in SQLite, whatever the collation of the database.
CREATE INDEX domains_of_account ON domains (account_id, host COLLATE "C");
