-- +goose Up
-- The owner's own ID of a link, one of a kind in the account; NULL: none.
ALTER TABLE links ADD COLUMN external_id TEXT;

DROP VIEW link_events;
CREATE VIEW link_events AS SELECT l.id, json_object('id', l.id, 'domain_id', l.domain_id,
    'host', coalesce((SELECT host FROM domains WHERE id = l.domain_id), ''),
    'domain_path_mode', coalesce((SELECT path_mode FROM domains WHERE id = l.domain_id), ''), 'hash', l.hash, 'former_hashes', l.former_hashes, 'url', l.url, 'title', l.title,
    'tags', l.tags, 'active', l.active, 'taken_down', l.taken_down, 'forward_query', l.forward_query, 'expires_at', l.expires_at,
    'expired_url', l.expired_url, 'extension', l.extension, 'external_id', coalesce(l.external_id, ''),
    'created_at', l.created_at, 'updated_at', l.updated_at) AS data
FROM links l;

DROP TRIGGER tell_link;
-- +goose StatementBegin
CREATE TRIGGER tell_link AFTER UPDATE ON links WHEN old.ordinal > 0 AND new.ordinal > 0
    AND (old.hash, old.former_hashes, old.url, old.title, old.tags, old.active, old.taken_down, old.forward_query, old.expires_at,
        old.expired_url, old.extension, old.external_id, old.updated_at)
    IS NOT
    (new.hash, new.former_hashes, new.url, new.title, new.tags, new.active, new.taken_down, new.forward_query, new.expires_at,
        new.expired_url, new.extension, new.external_id, new.updated_at)
    AND EXISTS (SELECT 1 FROM webhooks WHERE account_id = new.account_id)
BEGIN
    INSERT INTO events SELECT 'link.updated', new.account_id, new.domain_id, new.hash, old.tags || ' ' || new.tags, data
    FROM link_events WHERE id = new.id;
END;
-- +goose StatementEnd

-- Where links lead, for accounts that reuse links: see package linkstore.
ALTER TABLE accounts ADD COLUMN targets_until INTEGER NOT NULL DEFAULT 0; -- the ordinal of the last link in link_targets
CREATE TABLE link_targets (
    account_id INTEGER NOT NULL,
    target     TEXT    NOT NULL, -- the end of a URL that the link has or had
    ordinal    INTEGER NOT NULL, -- of the link, also of a deleted one times -1
    PRIMARY KEY (account_id, target, ordinal)
) STRICT, WITHOUT ROWID;
-- +goose StatementBegin
CREATE TRIGGER note_target AFTER UPDATE OF url ON links WHEN old.url <> new.url AND new.url <> '' BEGIN
    INSERT INTO link_targets (account_id, target, ordinal)
    VALUES (new.account_id, substr(new.url, length(new.url) - 23), abs(new.ordinal)) ON CONFLICT DO NOTHING;
END;
-- +goose StatementEnd
