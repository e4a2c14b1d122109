-- +goose Up
CREATE TABLE accounts (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email         text        NOT NULL UNIQUE,
    password_hash text        NOT NULL,
    suspended     boolean     NOT NULL,
    time_zone     text        NOT NULL DEFAULT '', -- an IANA name
    link_count    bigint      NOT NULL DEFAULT 0, -- the ordinal of the account's newest link
    deleted_links bigint      NOT NULL DEFAULT 0, -- of the links that link_count counts
    created_at    timestamptz NOT NULL
) WITH (fillfactor = 70); -- link_count changes with each link: leave room for the new row version on the same page

CREATE TABLE sessions (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id bigint      NOT NULL REFERENCES accounts (id),
    digest     bytea       NOT NULL UNIQUE,
    user_agent text        NOT NULL,
    created_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 70); -- a row changes while the session is used

CREATE INDEX sessions_of_account ON sessions (account_id);

CREATE TABLE tokens (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id bigint      NOT NULL REFERENCES accounts (id),
    name       text        NOT NULL,
    prefix     text        NOT NULL,
    digest     bytea       NOT NULL UNIQUE,
    created_at timestamptz NOT NULL,
    used_at    timestamptz,
    revoked_at timestamptz,
    scopes     text        NOT NULL DEFAULT '', -- separated by spaces; '': all
    expires_at timestamptz
) WITH (fillfactor = 70); -- a row changes while the token is used

CREATE INDEX tokens_of_account ON tokens (account_id, id) WHERE revoked_at IS NULL;

-- Leases of each token's rate limit by api nodes: one row per token, for its latest window.
CREATE TABLE rate_windows (
    token_id  bigint      PRIMARY KEY REFERENCES tokens (id),
    begins_at timestamptz NOT NULL,
    leases    bigint      NOT NULL
) WITH (fillfactor = 50); -- a row changes with each lease

-- Failed sign-ins and the like. The key begins with the window, so that it also finds the old rows.
CREATE TABLE attempts (
    begins_at timestamptz NOT NULL,
    key       bytea       NOT NULL,
    attempts  bigint      NOT NULL,
    PRIMARY KEY (begins_at, key)
) WITH (fillfactor = 70);

CREATE TABLE domains (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id    bigint      NOT NULL REFERENCES accounts (id),
    host          text        NOT NULL,
    challenge     text        NOT NULL,
    created_at    timestamptz NOT NULL,
    verified_at   timestamptz,
    lost_at       timestamptz, -- when another account got the host, or the operator took it away
    -- Of a verified domain, whose DNS records are looked up from time to time:
    check_at      timestamptz, -- next; NULL: never
    failing_since timestamptz,
    contested_by  bigint      NOT NULL DEFAULT 0, -- the domain with the same host whose records are there
    contested_at  timestamptz,
    root_url      text        NOT NULL DEFAULT '', -- '': none, as below
    not_found_url text        NOT NULL DEFAULT '',
    expired_url   text        NOT NULL DEFAULT '', -- of links without one
    apple_links   text        NOT NULL DEFAULT '', -- see schema.AppLinks
    android_links text        NOT NULL DEFAULT '',
    UNIQUE (host, account_id)
);

-- Many accounts may claim a host, and one may have it verified.
CREATE UNIQUE INDEX domains_verified ON domains (host) WHERE verified_at IS NOT NULL;
CREATE INDEX domains_to_check ON domains (check_at) WHERE check_at IS NOT NULL;
-- Ordered by bytes as in SQLite, whatever the collation of the database.
CREATE INDEX domains_of_account ON domains (account_id, host COLLATE "C");

-- A deleted link keeps its row, which reserves its hash. Its ordinal is the one it had times -1, so that no list but the trash meets
-- it; updated_at is when it was deleted. A link that was purged from the trash has no url.
CREATE TABLE links (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id    bigint      NOT NULL, -- see keep_owner
    domain_id     bigint      NOT NULL, -- 0: the default domain, which has no row
    hash          text        COLLATE "C" NOT NULL,
    url           text        NOT NULL,
    title         text        NOT NULL DEFAULT '',
    tags          text        NOT NULL DEFAULT '', -- separated by spaces
    active        boolean     NOT NULL,
    taken_down    boolean     NOT NULL DEFAULT false, -- by the operator
    remade        boolean     NOT NULL DEFAULT false, -- in the place of a deleted link
    forward_query boolean     NOT NULL DEFAULT false,
    expires_at    timestamptz, -- NULL: never
    expired_url   text        NOT NULL DEFAULT '', -- '': none
    extension     text        NOT NULL DEFAULT '', -- see schema.Extension; '': none
    password_hash text        NOT NULL DEFAULT '', -- of the password with the version that extension has; '': none
    ordinal       bigint      NOT NULL,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz, -- NULL: not since created_at
    UNIQUE (domain_id, hash), -- also finds the links of an account by hash
    UNIQUE (account_id, ordinal)
);

CREATE INDEX links_of_domain ON links (domain_id, ordinal) WHERE domain_id <> 0 AND ordinal > 0;
CREATE INDEX links_by_tags ON links (account_id, tags) WHERE tags <> '' AND ordinal > 0;
CREATE INDEX links_in_trash ON links (account_id, updated_at) WHERE ordinal < 0 AND url <> '';

-- A foreign key from links to accounts would be half of the cost of a new link. Every statement that creates links locks the row of
-- their account, and creates none without it, so a trigger that keeps accounts with links is enough.
-- +goose StatementBegin
CREATE FUNCTION keep_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'account % has links', OLD.id USING ERRCODE = 'foreign_key_violation';
END $$;
-- +goose StatementEnd
CREATE TRIGGER keep_owner BEFORE DELETE ON accounts FOR EACH ROW WHEN (OLD.link_count > 0) EXECUTE FUNCTION keep_owner();

-- The number of deleted links in each block of 1024 ordinals: see schema.OrdinalGap.
CREATE TABLE link_gaps (
    account_id bigint NOT NULL REFERENCES accounts (id),
    block      bigint NOT NULL,
    missing    bigint NOT NULL,
    PRIMARY KEY (account_id, block)
) WITH (fillfactor = 70);

-- Calls that their clients may repeat, with the answers. Both digests are SHA-256.
CREATE TABLE idempotency_keys (
    account_id bigint      NOT NULL REFERENCES accounts (id),
    key        bytea       NOT NULL,
    number     bigint      NOT NULL, -- grows by 1 with each key of the account
    request    bytea       NOT NULL,
    answer     bytea       NOT NULL, -- compressed by the api
    used_at    timestamptz NOT NULL,
    PRIMARY KEY (account_id, key),
    UNIQUE (account_id, number)
);
ALTER TABLE idempotency_keys ALTER COLUMN answer SET STORAGE EXTERNAL;

CREATE INDEX idempotency_keys_by_age ON idempotency_keys (used_at);

-- Files of links that accounts import, one per account.
CREATE TABLE uploads (
    id           text        PRIMARY KEY,
    account_id   bigint      NOT NULL UNIQUE REFERENCES accounts (id),
    file_name    text        NOT NULL,
    created_at   timestamptz NOT NULL,
    status       text        NOT NULL,
    errors       text        NOT NULL,
    holder       text        NOT NULL,
    leased_until timestamptz -- NULL: nobody works on it
);

CREATE TABLE upload_parts (
    upload_id text   NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
    number    bigint NOT NULL,
    content   bytea  NOT NULL,
    PRIMARY KEY (upload_id, number)
);

-- Files of the edges' certificates, encrypted by the edges. A key is a path.
CREATE TABLE certificate_files (
    key         text COLLATE "C" PRIMARY KEY,
    value       bytea       NOT NULL,
    modified_at timestamptz NOT NULL
);

-- Who is getting a certificate.
CREATE TABLE certificate_locks (
    name       text        PRIMARY KEY,
    holder     text        NOT NULL,
    expires_at timestamptz NOT NULL
);

CREATE TABLE certificate_states (
    host         text        PRIMARY KEY,
    expires_at   timestamptz, -- of the certificate; NULL: there never was one
    attempted_at timestamptz NOT NULL,
    error        text        NOT NULL -- of the last attempt
);

-- What all processes of the service share.
CREATE TABLE shared_values (
    name  text  PRIMARY KEY,
    value bytea NOT NULL
);

-- The processes of edges that take leases of the clicks of links with limits: see schema.LeaseStore. Those that have ended stay, so that a
-- call that arrives late finds them ended.
CREATE TABLE lease_holders (
    incarnation bytea   PRIMARY KEY,
    ended       boolean NOT NULL DEFAULT false
);

-- What a holder has of a link. The row whose incarnation is all zeros has what ended holders have spent.
CREATE TABLE leases (
    link_id     bigint NOT NULL,
    incarnation bytea  NOT NULL,
    call        bigint NOT NULL, -- that has stated the lease
    granted     bigint NOT NULL, -- clicks that the holder may have recorded
    spent       bigint NOT NULL, -- clicks that it has recorded, as far as known
    PRIMARY KEY (link_id, incarnation)
) WITH (fillfactor = 50);

CREATE INDEX leases_of_holder ON leases (incarnation);

-- What has changed and is not published yet: see schema.Outbox. Triggers write it, so that no change is left out.
CREATE TABLE outbox (
    xact    bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint, -- of the change
    id      bigint GENERATED ALWAYS AS IDENTITY,
    changes text   NOT NULL, -- a key of schema.Change per line
    PRIMARY KEY (xact, id)
);

-- +goose StatementBegin
CREATE FUNCTION note_new_links() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (changes)
    SELECT string_agg('link/' || domain_id || '/' || hash, E'\n') FROM made HAVING count(*) > 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- Caches may know that a link does not exist. One entry per statement costs next to nothing per link of a batch.
CREATE TRIGGER note_new_links AFTER INSERT ON links REFERENCING NEW TABLE AS made
    FOR EACH STATEMENT EXECUTE FUNCTION note_new_links();

-- +goose StatementBegin
CREATE FUNCTION note_link() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (changes) VALUES ('link/' || NEW.domain_id || '/' || NEW.hash);
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- Edges keep no titles, tags and times of edits.
CREATE TRIGGER note_link AFTER UPDATE ON links FOR EACH ROW WHEN (
    (OLD.id, OLD.account_id, OLD.url, OLD.active, OLD.taken_down, OLD.forward_query, OLD.expires_at, OLD.expired_url, OLD.extension, OLD.ordinal)
    IS DISTINCT FROM
    (NEW.id, NEW.account_id, NEW.url, NEW.active, NEW.taken_down, NEW.forward_query, NEW.expires_at, NEW.expired_url, NEW.extension, NEW.ordinal))
    EXECUTE FUNCTION note_link();

-- +goose StatementBegin
CREATE FUNCTION note_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (changes) VALUES ('account/' || NEW.id);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER note_account AFTER UPDATE OF suspended ON accounts
    FOR EACH ROW WHEN (OLD.suspended <> NEW.suspended) EXECUTE FUNCTION note_account();

-- +goose StatementBegin
CREATE FUNCTION note_host() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (changes) VALUES ('host/' || coalesce(NEW.host, OLD.host));
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- Edges know verified hosts only, and what their visitors get.
CREATE TRIGGER note_new_host AFTER INSERT ON domains
    FOR EACH ROW WHEN (NEW.verified_at IS NOT NULL) EXECUTE FUNCTION note_host();
CREATE TRIGGER note_host AFTER UPDATE OF verified_at, root_url, not_found_url, expired_url, apple_links, android_links ON domains
    FOR EACH ROW WHEN (
    (OLD.verified_at, OLD.root_url, OLD.not_found_url, OLD.expired_url, OLD.apple_links, OLD.android_links)
    IS DISTINCT FROM
    (NEW.verified_at, NEW.root_url, NEW.not_found_url, NEW.expired_url, NEW.apple_links, NEW.android_links))
    EXECUTE FUNCTION note_host();
CREATE TRIGGER note_deleted_host AFTER DELETE ON domains
    FOR EACH ROW WHEN (OLD.verified_at IS NOT NULL) EXECUTE FUNCTION note_host();

-- Reports that people without an account may read.
CREATE TABLE shares (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id    bigint      NOT NULL REFERENCES accounts (id),
    digest        bytea       NOT NULL UNIQUE,
    link_id       bigint      NOT NULL, -- 0: not the report of a link
    hash          text        NOT NULL, -- of the link
    domain_id     bigint, -- NULL: any
    tag           text        NOT NULL, -- '': links with any tags or none
    expires_at    timestamptz, -- NULL: never
    password_hash text        NOT NULL, -- '': none
    hide_targets  boolean     NOT NULL,
    created_at    timestamptz NOT NULL
);

CREATE INDEX shares_of_account ON shares (account_id, id);

CREATE TABLE webhooks (
    id               bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id       bigint      NOT NULL REFERENCES accounts (id),
    url              text        NOT NULL,
    events           text        NOT NULL, -- separated by spaces
    domain_id        bigint      NOT NULL, -- of hash
    hash             text        NOT NULL, -- '': any link
    tag              text        NOT NULL, -- '': links with any tags or none
    people_only      boolean     NOT NULL,
    active           boolean     NOT NULL,
    off_reason       text        NOT NULL DEFAULT '', -- why the service has switched it off
    secret           text        NOT NULL,
    old_secret       text        NOT NULL DEFAULT '',
    old_secret_until timestamptz,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    clicks_since     timestamptz NOT NULL, -- since when it is on and hears of clicks, if it does
    -- What changes with each event and delivery:
    waiting          bigint      NOT NULL DEFAULT 0, -- bytes of data that wait; 0: no delivery waits
    dropped          bigint      NOT NULL DEFAULT 0,
    failing_since    timestamptz,
    next_at          timestamptz NOT NULL, -- no attempt before
    holder           text        NOT NULL DEFAULT '',
    leased_until     timestamptz
) WITH (fillfactor = 50);

CREATE INDEX webhooks_of_account ON webhooks (account_id, id);
CREATE INDEX webhooks_to_send ON webhooks (next_at) WHERE waiting > 0;
CREATE INDEX webhooks_of_clicks ON webhooks (account_id) WHERE active AND position(' link.clicked ' IN ' ' || events || ' ') > 0;

CREATE TABLE webhook_deliveries (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id bigint      NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    message    text        NOT NULL, -- webhook-id
    event      text        NOT NULL,
    at         timestamptz NOT NULL,
    data       text        NOT NULL, -- see schema.Delivery
    status     text        NOT NULL DEFAULT 'waiting',
    attempts   bigint      NOT NULL DEFAULT 0,
    error      text        NOT NULL DEFAULT '',
    clicks     bigint      NOT NULL DEFAULT 0 -- above 0: so many clicks that wait to be put into a delivery
);

CREATE INDEX deliveries_of_webhook ON webhook_deliveries (webhook_id, id);
CREATE INDEX deliveries_waiting ON webhook_deliveries (webhook_id, id) WHERE status = 'waiting';
CREATE INDEX deliveries_finished ON webhook_deliveries (webhook_id, id) WHERE status <> 'waiting';
CREATE INDEX deliveries_shown ON webhook_deliveries (webhook_id, id) WHERE clicks = 0; -- clicks that wait are many rows

-- Up to where webhooks have heard of clicks: the marks of lanes, and where the topic is read on.
CREATE TABLE heard_lanes (
    incarnation bytea  NOT NULL,
    lane        bigint NOT NULL,
    seq         bigint NOT NULL,
    PRIMARY KEY (incarnation, lane)
);
CREATE TABLE heard_positions (
    partition   bigint PRIMARY KEY,
    epoch       bigint NOT NULL,
    next        bigint NOT NULL,
    last_offset bigint NOT NULL, -- of the last click, whose lane and number follow
    incarnation bytea  NOT NULL,
    lane        bigint NOT NULL,
    seq         bigint NOT NULL
);

-- deliver makes a delivery of every webhook that hears of an event and has room: see schema.MaxWebhookWaiting. The lock on the webhook
-- gives its deliveries IDs in the order of the commits. Locks are taken in the order accounts, links, webhooks.
-- +goose StatementBegin
CREATE FUNCTION deliver(of_event text, of_account bigint, of_domain bigint, of_link text, with_tags text, with_data text)
RETURNS void LANGUAGE sql AS $$
    WITH hooks AS MATERIALIZED (
            SELECT id, waiting + octet_length(with_data) <= 67108864 AS has_room FROM webhooks
            WHERE account_id = of_account AND active AND position(' ' || of_event || ' ' IN ' ' || events || ' ') > 0
                AND (hash = '' OR hash = of_link AND domain_id = of_domain)
                AND (tag = '' OR position(' ' || tag || ' ' IN ' ' || with_tags || ' ') > 0)
            ORDER BY id FOR NO KEY UPDATE),
        made AS (
            INSERT INTO webhook_deliveries (webhook_id, message, event, at, data)
            SELECT id, 'msg_' || replace(gen_random_uuid()::text, '-', ''), of_event, clock_timestamp(), with_data FROM hooks WHERE has_room)
    UPDATE webhooks w SET waiting = waiting + CASE WHEN has_room THEN octet_length(with_data) ELSE 0 END,
        dropped = dropped + CASE WHEN has_room THEN 0 ELSE 1 END
    FROM hooks WHERE hooks.id = w.id;
$$;
-- +goose StatementEnd

-- A link and a domain as in the data of events: see schema.LinkEvent and schema.DomainEvent.
-- +goose StatementBegin
CREATE FUNCTION link_event(l links) RETURNS text LANGUAGE sql AS $$
    SELECT json_build_object('id', l.id, 'domain_id', l.domain_id,
        'host', coalesce((SELECT host FROM domains WHERE id = l.domain_id), ''), 'hash', l.hash, 'url', l.url, 'title', l.title,
        'tags', l.tags, 'active', l.active::int, 'taken_down', l.taken_down::int, 'forward_query', l.forward_query::int,
        'expires_at', floor(extract(epoch FROM l.expires_at) * 1000)::bigint, 'expired_url', l.expired_url, 'extension', l.extension,
        'created_at', floor(extract(epoch FROM l.created_at) * 1000)::bigint,
        'updated_at', floor(extract(epoch FROM l.updated_at) * 1000)::bigint)::text
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION domain_event(d domains, deleted int) RETURNS text LANGUAGE sql AS $$
    SELECT json_build_object('id', d.id, 'host', d.host, 'verified', (d.verified_at IS NOT NULL)::int,
        'created_at', floor(extract(epoch FROM d.created_at) * 1000)::bigint, 'deleted', deleted)::text
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION tell_new_links() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM webhooks WHERE account_id IN (SELECT account_id FROM made)) THEN
        PERFORM deliver('link.created', l.account_id, l.domain_id, l.hash, l.tags, link_event(l))
        FROM links l WHERE l.id IN (SELECT m.id FROM made m WHERE EXISTS (SELECT FROM webhooks w WHERE w.account_id = m.account_id))
        ORDER BY l.account_id, l.ordinal;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER tell_new_links AFTER INSERT ON links REFERENCING NEW TABLE AS made
    FOR EACH STATEMENT EXECUTE FUNCTION tell_new_links();

-- A deleted link that is made anew keeps its row.
-- +goose StatementBegin
CREATE FUNCTION tell_link() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM webhooks WHERE account_id = NEW.account_id) THEN
        RETURN NULL;
    END IF;
    CASE
    WHEN NEW.ordinal < 0 THEN
        PERFORM deliver('link.deleted', OLD.account_id, OLD.domain_id, OLD.hash, OLD.tags, link_event(OLD));
    WHEN OLD.ordinal < 0 THEN
        PERFORM deliver('link.created', NEW.account_id, NEW.domain_id, NEW.hash, NEW.tags, link_event(NEW));
    ELSE
        PERFORM deliver('link.updated', NEW.account_id, NEW.domain_id, NEW.hash, OLD.tags || ' ' || NEW.tags, link_event(NEW));
    END CASE;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER tell_link AFTER UPDATE ON links FOR EACH ROW WHEN ((OLD.ordinal > 0 OR NEW.ordinal > 0) AND
    (OLD.ordinal, OLD.url, OLD.title, OLD.tags, OLD.active, OLD.taken_down, OLD.forward_query, OLD.expires_at, OLD.expired_url, OLD.extension, OLD.updated_at)
    IS DISTINCT FROM
    (NEW.ordinal, NEW.url, NEW.title, NEW.tags, NEW.active, NEW.taken_down, NEW.forward_query, NEW.expires_at, NEW.expired_url, NEW.extension, NEW.updated_at))
    EXECUTE FUNCTION tell_link();

-- +goose StatementBegin
CREATE FUNCTION tell_domain() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    it domains := coalesce(NEW, OLD);
BEGIN
    IF EXISTS (SELECT FROM webhooks WHERE account_id = it.account_id) THEN
        PERFORM deliver('domain.changed', it.account_id, it.id, '', '', domain_event(it, (TG_OP = 'DELETE')::int));
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER tell_new_domain AFTER INSERT OR DELETE ON domains FOR EACH ROW EXECUTE FUNCTION tell_domain();
CREATE TRIGGER tell_domain AFTER UPDATE ON domains FOR EACH ROW WHEN (
    (OLD.verified_at, OLD.lost_at, OLD.root_url, OLD.not_found_url, OLD.expired_url, OLD.apple_links, OLD.android_links)
    IS DISTINCT FROM
    (NEW.verified_at, NEW.lost_at, NEW.root_url, NEW.not_found_url, NEW.expired_url, NEW.apple_links, NEW.android_links))
    EXECUTE FUNCTION tell_domain();
