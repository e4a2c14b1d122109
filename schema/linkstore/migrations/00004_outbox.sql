-- +goose Up
-- Edges read an entry also for a minute after it was published, because the topic may not reach them.
ALTER TABLE outbox ADD COLUMN published {boolean: published} NOT NULL DEFAULT false;
-- When a process that publishes the entry has given up, or when a published entry is deleted.
ALTER TABLE outbox ADD COLUMN until {time};
CREATE INDEX outbox_unpublished ON outbox (id) WHERE NOT published;

-- When a link came back from the trash: the same call may be repeated for a minute.
ALTER TABLE links ADD COLUMN restored_at {time};
