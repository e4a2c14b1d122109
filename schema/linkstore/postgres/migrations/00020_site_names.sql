-- +goose Up
ALTER TABLE domains ADD COLUMN name text NOT NULL DEFAULT ''; -- on pages for visitors: see schema.Site
ALTER TABLE domains ADD COLUMN color text NOT NULL DEFAULT '';

DROP TRIGGER note_host ON domains;
CREATE TRIGGER note_host AFTER UPDATE OF verified_at, root_url, not_found_url, expired_url, path_mode, name, color, apple_links, android_links ON domains
    FOR EACH ROW WHEN (
    (OLD.verified_at, OLD.root_url, OLD.not_found_url, OLD.expired_url, OLD.path_mode, OLD.name, OLD.color, OLD.apple_links, OLD.android_links)
    IS DISTINCT FROM
    (NEW.verified_at, NEW.root_url, NEW.not_found_url, NEW.expired_url, NEW.path_mode, NEW.name, NEW.color, NEW.apple_links, NEW.android_links))
    EXECUTE FUNCTION note_host();
DROP TRIGGER tell_domain ON domains;
CREATE TRIGGER tell_domain AFTER UPDATE ON domains FOR EACH ROW WHEN (
    (OLD.verified_at, OLD.lost_at, OLD.root_url, OLD.not_found_url, OLD.expired_url, OLD.path_mode, OLD.name, OLD.color, OLD.apple_links, OLD.android_links)
    IS DISTINCT FROM
    (NEW.verified_at, NEW.lost_at, NEW.root_url, NEW.not_found_url, NEW.expired_url, NEW.path_mode, NEW.name, NEW.color, NEW.apple_links, NEW.android_links))
    EXECUTE FUNCTION tell_domain();
