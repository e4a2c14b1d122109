-- +goose Up
-- A migration of its own, because links are read while their indexes are made, and not while columns are added.
CREATE INDEX links_to_number ON links (account_id, updated_at) WHERE version <> numbered;
CREATE INDEX links_numbered ON links (account_id, number) WHERE number IS NOT NULL;
