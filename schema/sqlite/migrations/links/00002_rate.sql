-- +goose Up
-- What the api nodes have leased of each token's rate limit: one row for a token, of its latest window.
CREATE TABLE rate_windows (
    token_id  INTEGER PRIMARY KEY REFERENCES tokens (id),
    begins_at INTEGER NOT NULL,
    leases    INTEGER NOT NULL
) STRICT;
