-- +goose Up
-- What api nodes have leased of each token's rate limit: one row per token, for its latest window.
CREATE TABLE rate_windows (
    token_id  INTEGER PRIMARY KEY REFERENCES tokens (id),
    begins_at INTEGER NOT NULL,
    leases    INTEGER NOT NULL
) STRICT;
