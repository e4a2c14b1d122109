-- +goose Up
-- The owner's own ID of a link, one of a kind in the account; NULL: none.
ALTER TABLE links ADD COLUMN external_id text COLLATE "C";

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION link_event(l links) RETURNS text LANGUAGE sql AS $$
    SELECT json_build_object('id', l.id, 'domain_id', l.domain_id,
        'host', coalesce((SELECT host FROM domains WHERE id = l.domain_id), ''),
        'domain_path_mode', coalesce((SELECT path_mode FROM domains WHERE id = l.domain_id), ''), 'hash', l.hash, 'former_hashes', l.former_hashes, 'url', l.url, 'title', l.title,
        'tags', l.tags, 'active', l.active::int, 'taken_down', l.taken_down::int, 'forward_query', l.forward_query::int,
        'expires_at', floor(extract(epoch FROM l.expires_at) * 1000)::bigint, 'expired_url', l.expired_url, 'extension', l.extension,
        'external_id', coalesce(l.external_id, ''),
        'created_at', floor(extract(epoch FROM l.created_at) * 1000)::bigint,
        'updated_at', floor(extract(epoch FROM l.updated_at) * 1000)::bigint)::text
$$;
-- +goose StatementEnd

DROP TRIGGER tell_link ON links;
CREATE TRIGGER tell_link AFTER UPDATE ON links FOR EACH ROW WHEN ((OLD.ordinal > 0 OR NEW.ordinal > 0) AND
    (OLD.ordinal, OLD.hash, OLD.former_hashes, OLD.url, OLD.title, OLD.tags, OLD.active, OLD.taken_down, OLD.forward_query,
        OLD.expires_at, OLD.expired_url, OLD.extension, OLD.external_id, OLD.updated_at)
    IS DISTINCT FROM
    (NEW.ordinal, NEW.hash, NEW.former_hashes, NEW.url, NEW.title, NEW.tags, NEW.active, NEW.taken_down, NEW.forward_query,
        NEW.expires_at, NEW.expired_url, NEW.extension, NEW.external_id, NEW.updated_at))
    EXECUTE FUNCTION tell_link();

-- Where links lead, for accounts that reuse links: see package linkstore.
ALTER TABLE accounts ADD COLUMN targets_until bigint NOT NULL DEFAULT 0; -- the ordinal of the last link in link_targets
CREATE TABLE link_targets (
    account_id bigint NOT NULL, -- a foreign key would cost more than the row; see keep_owner
    target     text   COLLATE "C" NOT NULL, -- the end of a URL that the link has or had
    ordinal    bigint NOT NULL, -- of the link, also of a deleted one times -1
    PRIMARY KEY (account_id, target, ordinal)
);
-- +goose StatementBegin
CREATE FUNCTION note_target() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO link_targets (account_id, target, ordinal)
    VALUES (NEW.account_id, substr(NEW.url, length(NEW.url) - 23), abs(NEW.ordinal)) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER note_target AFTER UPDATE OF url ON links
    FOR EACH ROW WHEN (OLD.url <> NEW.url AND NEW.url <> '') EXECUTE FUNCTION note_target();
