-- +goose Up
-- A former hash of a link is a row of links: see package linkstore. The link has them all, separated by spaces.
ALTER TABLE links ADD COLUMN former_hashes TEXT NOT NULL DEFAULT '';
ALTER TABLE links ADD COLUMN former_of INTEGER; -- the ID of the link; NULL: the row is a link

-- Edges keep a link under each of its names.
DROP TRIGGER note_link;
-- +goose StatementBegin
CREATE TRIGGER note_link AFTER UPDATE ON links WHEN
    (old.id, old.account_id, old.hash, old.former_hashes, old.former_of, old.url, old.active, old.taken_down, old.forward_query, old.expires_at,
        old.expired_url, old.extension, old.ordinal)
    IS NOT
    (new.id, new.account_id, new.hash, new.former_hashes, new.former_of, new.url, new.active, new.taken_down, new.forward_query, new.expires_at,
        new.expired_url, new.extension, new.ordinal)
BEGIN
    INSERT INTO outbox (changes) VALUES ('link/' || new.domain_id || '/' || new.hash || CASE
        WHEN old.hash = new.hash AND old.former_hashes = '' THEN ''
        ELSE char(10) || 'link/' || new.domain_id || '/' ||
            replace(trim(old.hash || ' ' || old.former_hashes), ' ', char(10) || 'link/' || new.domain_id || '/') END);
END;
-- +goose StatementEnd

DROP VIEW link_events;
CREATE VIEW link_events AS SELECT l.id, json_object('id', l.id, 'domain_id', l.domain_id,
    'host', coalesce((SELECT host FROM domains WHERE id = l.domain_id), ''), 'hash', l.hash, 'former_hashes', l.former_hashes,
    'url', l.url, 'title', l.title, 'tags', l.tags, 'active', l.active, 'taken_down', l.taken_down,
    'forward_query', l.forward_query, 'expires_at', l.expires_at, 'expired_url', l.expired_url, 'extension', l.extension,
    'created_at', l.created_at, 'updated_at', l.updated_at) AS data
FROM links l;
DROP TRIGGER tell_new_link;
-- +goose StatementBegin
CREATE TRIGGER tell_new_link AFTER INSERT ON links WHEN new.former_of IS NULL
    AND EXISTS (SELECT 1 FROM webhooks WHERE account_id = new.account_id)
BEGIN
    INSERT INTO events SELECT 'link.created', new.account_id, new.domain_id, new.hash, new.tags, data FROM link_events WHERE id = new.id;
END;
-- +goose StatementEnd
DROP TRIGGER tell_link;
-- +goose StatementBegin
CREATE TRIGGER tell_link AFTER UPDATE ON links WHEN old.ordinal > 0 AND new.ordinal > 0 AND
    (old.hash, old.former_hashes, old.url, old.title, old.tags, old.active, old.taken_down, old.forward_query, old.expires_at,
        old.expired_url, old.extension, old.updated_at)
    IS NOT
    (new.hash, new.former_hashes, new.url, new.title, new.tags, new.active, new.taken_down, new.forward_query, new.expires_at,
        new.expired_url, new.extension, new.updated_at)
    AND EXISTS (SELECT 1 FROM webhooks WHERE account_id = new.account_id)
BEGIN
    INSERT INTO events SELECT 'link.updated', new.account_id, new.domain_id, new.hash, old.tags || ' ' || new.tags, data
    FROM link_events WHERE id = new.id;
END;
-- +goose StatementEnd
