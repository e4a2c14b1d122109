-- +goose Up
-- Each edit, renamed tag, deletion and restoring adds 1.
ALTER TABLE links ADD COLUMN version {integer} NOT NULL DEFAULT 1;
