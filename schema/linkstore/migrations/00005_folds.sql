-- +goose Up
-- What searches compare: see schema.Fold. NULL: url or title in lower-case ASCII is enough, or the link waits to be folded.
ALTER TABLE links ADD COLUMN folded_url text;
ALTER TABLE links ADD COLUMN folded_title text;
