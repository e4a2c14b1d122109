-- +goose Up
-- A file is with the process that received it. Its state is here, so that every process can show it.
DROP TABLE upload_parts;
DROP TABLE uploads;

CREATE TABLE imports (
    account_id {integer}            NOT NULL PRIMARY KEY REFERENCES accounts (id),
    id         text                 NOT NULL,
    status     text                 NOT NULL, -- JSON
    errors     text                 NOT NULL, -- CSV
    requested  {boolean: requested} NOT NULL,
    updated_at {time}               NOT NULL
){strict};
