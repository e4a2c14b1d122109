-- +goose Up
-- The log that next belongs to, and the last counted click in it. Earlier releases did not store its offset: -1.
ALTER TABLE positions ADD COLUMN epoch       INTEGER NOT NULL DEFAULT 0;
ALTER TABLE positions ADD COLUMN last_offset INTEGER NOT NULL DEFAULT -1;
ALTER TABLE positions ADD COLUMN incarnation BLOB    NOT NULL DEFAULT x'';
ALTER TABLE positions ADD COLUMN lane        INTEGER NOT NULL DEFAULT 0;
