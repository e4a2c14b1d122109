-- +goose Up
-- A migration of its own, because links are read while their indexes are made, and not while columns are added.
CREATE UNIQUE INDEX links_by_external_id ON links (account_id, external_id) WHERE external_id IS NOT NULL;
