-- +goose Up
-- A migration of its own, because links are read while their indexes are made, and not while columns are added.
-- Links that were deleted before changes had numbers are changes, too.
UPDATE links SET numbered = 0 WHERE ordinal < 0 AND former_of IS NULL;
CREATE INDEX links_to_number ON links (account_id, updated_at) WHERE version <> numbered;
CREATE INDEX links_numbered ON links (account_id, number) WHERE number IS NOT NULL;
