-- +goose Up
-- What the api nodes have leased of each token's rate limit: one row for a token, of its latest window.
CREATE TABLE rate_windows (
    token_id  bigint      PRIMARY KEY REFERENCES tokens (id),
    begins_at timestamptz NOT NULL,
    leases    bigint      NOT NULL
) WITH (fillfactor = 50); -- it changes with each lease: room for the new version on the same page
