-- +goose Up
ALTER TABLE links ADD COLUMN taken_down boolean NOT NULL DEFAULT false; -- by the operator

ALTER TABLE domains ADD COLUMN lost_at timestamptz; -- when another account got the host, or the operator took it away
-- Of a verified domain, whose records are looked up from time to time:
ALTER TABLE domains ADD COLUMN check_at timestamptz; -- next; NULL: never
ALTER TABLE domains ADD COLUMN failing_since timestamptz;
ALTER TABLE domains ADD COLUMN contested_by bigint NOT NULL DEFAULT 0; -- the domain with the same host whose records are there
ALTER TABLE domains ADD COLUMN contested_at timestamptz;

UPDATE domains SET check_at = verified_at WHERE verified_at IS NOT NULL;

CREATE INDEX domains_to_check ON domains (check_at) WHERE check_at IS NOT NULL;
