-- +goose Up
-- The changes of an account's links are numbered by the calls that read them: see the package's documentation.
ALTER TABLE accounts ADD COLUMN change_count {integer} NOT NULL DEFAULT 0; -- the number of the last numbered change
ALTER TABLE links ADD COLUMN number {integer}; -- of the last numbered change; NULL: none
ALTER TABLE links ADD COLUMN numbered {integer} NOT NULL DEFAULT 1; -- the version of the link that has the number
-- The links with greater ordinals have changed, because the domain was verified or lost; NULL: none.
ALTER TABLE domains ADD COLUMN changed_after {integer};
