-- +goose Up
-- Links that were deleted before changes had numbers are changes, too. A migration of its own, so that the migration
-- that makes the indexes of changes, and waits for a lock on all links, repeats nothing expensive.
UPDATE links SET numbered = 0 WHERE ordinal < 0 AND former_of IS NULL;
