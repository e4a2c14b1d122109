-- +goose Up
ALTER TABLE domains ADD COLUMN path_mode TEXT NOT NULL DEFAULT ''; -- of links without one: see schema.PathMode

DROP TRIGGER note_host;
-- +goose StatementBegin
CREATE TRIGGER note_host AFTER UPDATE OF verified_at, root_url, not_found_url, expired_url, path_mode, apple_links, android_links ON domains WHEN
    (old.verified_at, old.root_url, old.not_found_url, old.expired_url, old.path_mode, old.apple_links, old.android_links)
    IS NOT
    (new.verified_at, new.root_url, new.not_found_url, new.expired_url, new.path_mode, new.apple_links, new.android_links)
BEGIN
    INSERT INTO outbox (changes) VALUES ('host/' || new.host);
END;
-- +goose StatementEnd
DROP TRIGGER tell_domain;
-- +goose StatementBegin
CREATE TRIGGER tell_domain AFTER UPDATE ON domains WHEN
    (old.verified_at, old.lost_at, old.root_url, old.not_found_url, old.expired_url, old.path_mode, old.apple_links, old.android_links)
    IS NOT
    (new.verified_at, new.lost_at, new.root_url, new.not_found_url, new.expired_url, new.path_mode, new.apple_links, new.android_links)
    AND EXISTS (SELECT 1 FROM webhooks WHERE account_id = new.account_id)
BEGIN
    INSERT INTO events SELECT 'domain.changed', new.account_id, new.id, '', '', data FROM domain_events WHERE id = new.id;
END;
-- +goose StatementEnd

DROP VIEW link_events;
CREATE VIEW link_events AS SELECT l.id, json_object('id', l.id, 'domain_id', l.domain_id,
    'host', coalesce((SELECT host FROM domains WHERE id = l.domain_id), ''),
    'domain_path_mode', coalesce((SELECT path_mode FROM domains WHERE id = l.domain_id), ''),
    'hash', l.hash, 'former_hashes', l.former_hashes,
    'url', l.url, 'title', l.title, 'tags', l.tags, 'active', l.active, 'taken_down', l.taken_down,
    'forward_query', l.forward_query, 'expires_at', l.expires_at, 'expired_url', l.expired_url, 'extension', l.extension,
    'created_at', l.created_at, 'updated_at', l.updated_at) AS data
FROM links l;
