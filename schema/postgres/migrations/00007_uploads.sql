-- +goose Up
-- Files of links that accounts import, one per account.
CREATE TABLE uploads (
    id           text        PRIMARY KEY,
    account_id   bigint      NOT NULL UNIQUE REFERENCES accounts (id),
    file_name    text        NOT NULL,
    created_at   timestamptz NOT NULL,
    status       text        NOT NULL,
    errors       text        NOT NULL,
    holder       text        NOT NULL,
    leased_until timestamptz -- NULL: nobody works on it
);

CREATE TABLE upload_parts (
    upload_id text   NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
    number    bigint NOT NULL,
    content   bytea  NOT NULL,
    PRIMARY KEY (upload_id, number)
);
