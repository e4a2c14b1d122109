-- +goose Up
ALTER TABLE domains ADD COLUMN name TEXT NOT NULL DEFAULT ''; -- on pages for visitors: see schema.Site
ALTER TABLE domains ADD COLUMN color TEXT NOT NULL DEFAULT '';

DROP TRIGGER note_host;
-- +goose StatementBegin
CREATE TRIGGER note_host AFTER UPDATE OF verified_at, root_url, not_found_url, expired_url, path_mode, name, color, apple_links, android_links ON domains WHEN
    (old.verified_at, old.root_url, old.not_found_url, old.expired_url, old.path_mode, old.name, old.color, old.apple_links, old.android_links)
    IS NOT
    (new.verified_at, new.root_url, new.not_found_url, new.expired_url, new.path_mode, new.name, new.color, new.apple_links, new.android_links)
BEGIN
    INSERT INTO outbox (changes) VALUES ('host/' || new.host);
END;
-- +goose StatementEnd
DROP TRIGGER tell_domain;
-- +goose StatementBegin
CREATE TRIGGER tell_domain AFTER UPDATE ON domains WHEN
    (old.verified_at, old.lost_at, old.root_url, old.not_found_url, old.expired_url, old.path_mode, old.name, old.color, old.apple_links, old.android_links)
    IS NOT
    (new.verified_at, new.lost_at, new.root_url, new.not_found_url, new.expired_url, new.path_mode, new.name, new.color, new.apple_links, new.android_links)
    AND EXISTS (SELECT 1 FROM webhooks WHERE account_id = new.account_id)
BEGIN
    INSERT INTO events SELECT 'domain.changed', new.account_id, new.id, '', '', data FROM domain_events WHERE id = new.id;
END;
-- +goose StatementEnd
