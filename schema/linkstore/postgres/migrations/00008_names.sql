-- +goose Up
-- A former hash of a link is a row of links: see package linkstore. The link has them all, separated by spaces.
ALTER TABLE links ADD COLUMN former_hashes text NOT NULL DEFAULT '';
ALTER TABLE links ADD COLUMN former_of bigint; -- the ID of the link; NULL: the row is a link

-- Edges keep a link under each of its names.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION note_link() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    link text := 'link/' || NEW.domain_id || '/';
BEGIN
    INSERT INTO outbox (changes) VALUES (link || NEW.hash || CASE
        WHEN OLD.hash = NEW.hash AND OLD.former_hashes = '' THEN ''
        ELSE E'\n' || link || replace(trim(OLD.hash || ' ' || OLD.former_hashes), ' ', E'\n' || link) END);
    RETURN NULL;
END $$;
-- +goose StatementEnd
DROP TRIGGER note_link ON links;
CREATE TRIGGER note_link AFTER UPDATE ON links FOR EACH ROW WHEN (
    (OLD.id, OLD.account_id, OLD.hash, OLD.former_hashes, OLD.former_of, OLD.url, OLD.active, OLD.taken_down, OLD.forward_query, OLD.expires_at,
        OLD.expired_url, OLD.extension, OLD.ordinal)
    IS DISTINCT FROM
    (NEW.id, NEW.account_id, NEW.hash, NEW.former_hashes, NEW.former_of, NEW.url, NEW.active, NEW.taken_down, NEW.forward_query, NEW.expires_at,
        NEW.expired_url, NEW.extension, NEW.ordinal))
    EXECUTE FUNCTION note_link();

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION link_event(l links) RETURNS text LANGUAGE sql AS $$
    SELECT json_build_object('id', l.id, 'domain_id', l.domain_id,
        'host', coalesce((SELECT host FROM domains WHERE id = l.domain_id), ''), 'hash', l.hash, 'former_hashes', l.former_hashes,
        'url', l.url, 'title', l.title, 'tags', l.tags, 'active', l.active::int, 'taken_down', l.taken_down::int,
        'forward_query', l.forward_query::int, 'expires_at', floor(extract(epoch FROM l.expires_at) * 1000)::bigint,
        'expired_url', l.expired_url, 'extension', l.extension,
        'created_at', floor(extract(epoch FROM l.created_at) * 1000)::bigint,
        'updated_at', floor(extract(epoch FROM l.updated_at) * 1000)::bigint)::text
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION tell_new_links() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM webhooks WHERE account_id IN (SELECT account_id FROM made)) THEN
        PERFORM deliver('link.created', l.account_id, l.domain_id, l.hash, l.tags, link_event(l))
        FROM links l WHERE l.id IN (SELECT m.id FROM made m
            WHERE m.former_of IS NULL AND EXISTS (SELECT FROM webhooks w WHERE w.account_id = m.account_id))
        ORDER BY l.account_id, l.ordinal;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
DROP TRIGGER tell_link ON links;
CREATE TRIGGER tell_link AFTER UPDATE ON links FOR EACH ROW WHEN ((OLD.ordinal > 0 OR NEW.ordinal > 0) AND
    (OLD.ordinal, OLD.hash, OLD.former_hashes, OLD.url, OLD.title, OLD.tags, OLD.active, OLD.taken_down, OLD.forward_query,
        OLD.expires_at, OLD.expired_url, OLD.extension, OLD.updated_at)
    IS DISTINCT FROM
    (NEW.ordinal, NEW.hash, NEW.former_hashes, NEW.url, NEW.title, NEW.tags, NEW.active, NEW.taken_down, NEW.forward_query,
        NEW.expires_at, NEW.expired_url, NEW.extension, NEW.updated_at))
    EXECUTE FUNCTION tell_link();
