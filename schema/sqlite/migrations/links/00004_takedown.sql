-- +goose Up
ALTER TABLE links ADD COLUMN taken_down INTEGER NOT NULL DEFAULT 0 CHECK (taken_down IN (0, 1)); -- by the operator

ALTER TABLE domains ADD COLUMN lost_at INTEGER; -- when another account got the host, or the operator took it away
-- Of a verified domain, whose records are looked up from time to time:
ALTER TABLE domains ADD COLUMN check_at INTEGER; -- next; NULL: never
ALTER TABLE domains ADD COLUMN failing_since INTEGER;
ALTER TABLE domains ADD COLUMN contested_by INTEGER NOT NULL DEFAULT 0; -- the domain with the same host whose records are there
ALTER TABLE domains ADD COLUMN contested_at INTEGER;

UPDATE domains SET check_at = verified_at WHERE verified_at IS NOT NULL;

CREATE INDEX domains_to_check ON domains (check_at) WHERE check_at IS NOT NULL;
