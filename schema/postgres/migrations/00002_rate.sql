-- +goose Up
-- What api nodes have leased of each token's rate limit: one row per token, for its latest window.
CREATE TABLE rate_windows (
    token_id  bigint      PRIMARY KEY REFERENCES tokens (id),
    begins_at timestamptz NOT NULL,
    leases    bigint      NOT NULL
) WITH (fillfactor = 50); -- a row changes with each lease: leave room for the new version on the same page
