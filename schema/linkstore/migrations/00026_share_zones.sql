-- +goose Up
-- The zone in which the owner of an account that names none saw the report.
ALTER TABLE shares ADD COLUMN time_zone TEXT NOT NULL DEFAULT '';
