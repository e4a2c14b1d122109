-- +goose Up
ALTER TABLE domains ADD COLUMN path_mode text NOT NULL DEFAULT ''; -- of links without one: see schema.PathMode

DROP TRIGGER note_host ON domains;
CREATE TRIGGER note_host AFTER UPDATE OF verified_at, root_url, not_found_url, expired_url, path_mode, apple_links, android_links ON domains
    FOR EACH ROW WHEN (
    (OLD.verified_at, OLD.root_url, OLD.not_found_url, OLD.expired_url, OLD.path_mode, OLD.apple_links, OLD.android_links)
    IS DISTINCT FROM
    (NEW.verified_at, NEW.root_url, NEW.not_found_url, NEW.expired_url, NEW.path_mode, NEW.apple_links, NEW.android_links))
    EXECUTE FUNCTION note_host();
DROP TRIGGER tell_domain ON domains;
CREATE TRIGGER tell_domain AFTER UPDATE ON domains FOR EACH ROW WHEN (
    (OLD.verified_at, OLD.lost_at, OLD.root_url, OLD.not_found_url, OLD.expired_url, OLD.path_mode, OLD.apple_links, OLD.android_links)
    IS DISTINCT FROM
    (NEW.verified_at, NEW.lost_at, NEW.root_url, NEW.not_found_url, NEW.expired_url, NEW.path_mode, NEW.apple_links, NEW.android_links))
    EXECUTE FUNCTION tell_domain();

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION link_event(l links) RETURNS text LANGUAGE sql AS $$
    SELECT json_build_object('id', l.id, 'domain_id', l.domain_id,
        'host', coalesce((SELECT host FROM domains WHERE id = l.domain_id), ''),
        'domain_path_mode', coalesce((SELECT path_mode FROM domains WHERE id = l.domain_id), ''),
        'hash', l.hash, 'former_hashes', l.former_hashes,
        'url', l.url, 'title', l.title, 'tags', l.tags, 'active', l.active::int, 'taken_down', l.taken_down::int,
        'forward_query', l.forward_query::int, 'expires_at', floor(extract(epoch FROM l.expires_at) * 1000)::bigint,
        'expired_url', l.expired_url, 'extension', l.extension,
        'created_at', floor(extract(epoch FROM l.created_at) * 1000)::bigint,
        'updated_at', floor(extract(epoch FROM l.updated_at) * 1000)::bigint)::text
$$;
-- +goose StatementEnd
