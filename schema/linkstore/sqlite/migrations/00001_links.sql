-- Times are milliseconds since 1970-01-01T00:00:00Z. Other databases refer to rows by their ids: AUTOINCREMENT never uses
-- an id again, even after its row is deleted.

-- +goose Up
CREATE TABLE accounts (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    email         TEXT    NOT NULL UNIQUE,
    password_hash TEXT    NOT NULL,
    suspended     INTEGER NOT NULL CHECK (suspended IN (0, 1)),
    time_zone     TEXT    NOT NULL DEFAULT '', -- an IANA name
    link_count    INTEGER NOT NULL DEFAULT 0, -- the ordinal of the account's newest link
    deleted_links INTEGER NOT NULL DEFAULT 0, -- of the links that link_count counts
    created_at    INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    digest     BLOB    NOT NULL UNIQUE,
    user_agent TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;

CREATE INDEX sessions_of_account ON sessions (account_id);

CREATE TABLE tokens (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    name       TEXT    NOT NULL,
    prefix     TEXT    NOT NULL,
    digest     BLOB    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    used_at    INTEGER,
    revoked_at INTEGER,
    scopes     TEXT    NOT NULL DEFAULT '', -- separated by spaces; '': all
    expires_at INTEGER
) STRICT;

CREATE INDEX tokens_of_account ON tokens (account_id, id) WHERE revoked_at IS NULL;

-- Leases of each token's rate limit by api nodes: one row per token, for its latest window.
CREATE TABLE rate_windows (
    token_id  INTEGER PRIMARY KEY REFERENCES tokens (id),
    begins_at INTEGER NOT NULL,
    leases    INTEGER NOT NULL
) STRICT;

-- Failed sign-ins and the like. The key begins with the window, so that it also finds the old rows.
CREATE TABLE attempts (
    begins_at INTEGER NOT NULL,
    key       BLOB    NOT NULL,
    attempts  INTEGER NOT NULL,
    PRIMARY KEY (begins_at, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE domains (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id    INTEGER NOT NULL REFERENCES accounts (id),
    host          TEXT    NOT NULL,
    challenge     TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    verified_at   INTEGER,
    lost_at       INTEGER, -- when another account got the host, or the operator took it away
    -- Of a verified domain, whose DNS records are looked up from time to time:
    check_at      INTEGER, -- next; NULL: never
    failing_since INTEGER,
    contested_by  INTEGER NOT NULL DEFAULT 0, -- the domain with the same host whose records are there
    contested_at  INTEGER,
    root_url      TEXT    NOT NULL DEFAULT '', -- '': none, as below
    not_found_url TEXT    NOT NULL DEFAULT '',
    expired_url   TEXT    NOT NULL DEFAULT '', -- of links without one
    apple_links   TEXT    NOT NULL DEFAULT '', -- see schema.AppLinks
    android_links TEXT    NOT NULL DEFAULT '',
    UNIQUE (host, account_id)
) STRICT;

-- Many accounts may claim a host, and one may have it verified.
CREATE UNIQUE INDEX domains_verified ON domains (host) WHERE verified_at IS NOT NULL;
CREATE INDEX domains_to_check ON domains (check_at) WHERE check_at IS NOT NULL;
CREATE INDEX domains_of_account ON domains (account_id, host);

-- A deleted link keeps its row, which reserves its hash. Its ordinal is the one it had times -1, so that no list but the trash meets
-- it; updated_at is when it was deleted. A link that was purged from the trash has no url.
CREATE TABLE links (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id    INTEGER NOT NULL REFERENCES accounts (id),
    domain_id     INTEGER NOT NULL, -- 0: the default domain, which has no row
    hash          TEXT    NOT NULL,
    url           TEXT    NOT NULL,
    title         TEXT    NOT NULL DEFAULT '',
    tags          TEXT    NOT NULL DEFAULT '', -- separated by spaces
    active        INTEGER NOT NULL CHECK (active IN (0, 1)),
    taken_down    INTEGER NOT NULL DEFAULT 0 CHECK (taken_down IN (0, 1)), -- by the operator
    remade        INTEGER NOT NULL DEFAULT 0 CHECK (remade IN (0, 1)), -- in the place of a deleted link
    forward_query INTEGER NOT NULL DEFAULT 0 CHECK (forward_query IN (0, 1)),
    expires_at    INTEGER, -- NULL: never
    expired_url   TEXT    NOT NULL DEFAULT '', -- '': none
    extension     TEXT    NOT NULL DEFAULT '', -- see schema.Extension; '': none
    password_hash TEXT    NOT NULL DEFAULT '', -- of the password with the version that extension has; '': none
    ordinal       INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER, -- NULL: not since created_at
    UNIQUE (domain_id, hash),
    UNIQUE (account_id, ordinal)
) STRICT;

CREATE INDEX links_of_account ON links (account_id, hash);
CREATE INDEX links_of_domain ON links (domain_id, ordinal) WHERE domain_id <> 0 AND ordinal > 0;
-- SQLite counts tags in the index alone only if the index has the ordinal, too.
CREATE INDEX links_by_tags ON links (account_id, tags, ordinal) WHERE tags <> '' AND ordinal > 0;
CREATE INDEX links_in_trash ON links (account_id, updated_at) WHERE ordinal < 0 AND url <> '';

-- The number of deleted links in each block of 1024 ordinals: see schema.OrdinalGap.
CREATE TABLE link_gaps (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    block      INTEGER NOT NULL,
    missing    INTEGER NOT NULL,
    PRIMARY KEY (account_id, block)
) STRICT, WITHOUT ROWID;

-- Calls that their clients may repeat, with the answers. Both digests are SHA-256.
CREATE TABLE idempotency_keys (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    key        BLOB    NOT NULL,
    number     INTEGER NOT NULL, -- grows by 1 with each key of the account
    request    BLOB    NOT NULL,
    answer     BLOB    NOT NULL,
    used_at    INTEGER NOT NULL,
    PRIMARY KEY (account_id, key),
    UNIQUE (account_id, number)
) STRICT;

CREATE INDEX idempotency_keys_by_age ON idempotency_keys (used_at);

-- Files of links that accounts import, one per account.
CREATE TABLE uploads (
    id           TEXT    NOT NULL PRIMARY KEY,
    account_id   INTEGER NOT NULL UNIQUE REFERENCES accounts (id),
    file_name    TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    status       TEXT    NOT NULL,
    errors       TEXT    NOT NULL,
    holder       TEXT    NOT NULL,
    leased_until INTEGER -- NULL: nobody works on it
) STRICT;

CREATE TABLE upload_parts (
    upload_id TEXT    NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
    number    INTEGER NOT NULL,
    content   BLOB    NOT NULL,
    PRIMARY KEY (upload_id, number)
) STRICT;

-- Files of the edges' certificates, encrypted by the edges. A key is a path.
CREATE TABLE certificate_files (
    key         TEXT    NOT NULL PRIMARY KEY,
    value       BLOB    NOT NULL,
    modified_at INTEGER NOT NULL
) STRICT;

-- Who is getting a certificate.
CREATE TABLE certificate_locks (
    name       TEXT    NOT NULL PRIMARY KEY,
    holder     TEXT    NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE certificate_states (
    host         TEXT    NOT NULL PRIMARY KEY,
    expires_at   INTEGER, -- of the certificate; NULL: there never was one
    attempted_at INTEGER NOT NULL,
    error        TEXT    NOT NULL -- of the last attempt
) STRICT, WITHOUT ROWID;

-- What all processes of the service share.
CREATE TABLE shared_values (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The processes of edges that take leases of the clicks of links with limits: see schema.LeaseStore. Those that have ended stay, so that a
-- call that arrives late finds them ended.
CREATE TABLE lease_holders (
    incarnation BLOB    NOT NULL PRIMARY KEY,
    ended       INTEGER NOT NULL DEFAULT 0 CHECK (ended IN (0, 1))
) STRICT, WITHOUT ROWID;

-- What a holder has of a link. The row whose incarnation is all zeros has what ended holders have spent.
CREATE TABLE leases (
    link_id     INTEGER NOT NULL,
    incarnation BLOB    NOT NULL,
    call        INTEGER NOT NULL, -- that has stated the lease
    granted     INTEGER NOT NULL, -- clicks that the holder may have recorded
    spent       INTEGER NOT NULL, -- clicks that it has recorded, as far as known
    PRIMARY KEY (link_id, incarnation)
) STRICT, WITHOUT ROWID;

CREATE INDEX leases_of_holder ON leases (incarnation);

-- What has changed and is not published yet: see schema.Outbox. Triggers write it, so that no change is left out.
CREATE TABLE outbox (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    changes TEXT    NOT NULL -- a key of schema.Change per line
) STRICT;

-- Caches may know that a link does not exist.
-- +goose StatementBegin
CREATE TRIGGER note_new_link AFTER INSERT ON links BEGIN
    INSERT INTO outbox (changes) VALUES ('link/' || new.domain_id || '/' || new.hash);
END;
-- +goose StatementEnd

-- Edges keep no titles, tags and times of edits.
-- +goose StatementBegin
CREATE TRIGGER note_link AFTER UPDATE ON links WHEN
    (old.id, old.account_id, old.url, old.active, old.taken_down, old.forward_query, old.expires_at, old.expired_url, old.extension, old.ordinal)
    IS NOT
    (new.id, new.account_id, new.url, new.active, new.taken_down, new.forward_query, new.expires_at, new.expired_url, new.extension, new.ordinal)
BEGIN
    INSERT INTO outbox (changes) VALUES ('link/' || new.domain_id || '/' || new.hash);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER note_account AFTER UPDATE OF suspended ON accounts WHEN old.suspended <> new.suspended BEGIN
    INSERT INTO outbox (changes) VALUES ('account/' || new.id);
END;
-- +goose StatementEnd

-- Edges know verified hosts only, and what their visitors get.
-- +goose StatementBegin
CREATE TRIGGER note_new_host AFTER INSERT ON domains WHEN new.verified_at IS NOT NULL BEGIN
    INSERT INTO outbox (changes) VALUES ('host/' || new.host);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER note_host AFTER UPDATE OF verified_at, root_url, not_found_url, expired_url, apple_links, android_links ON domains WHEN
    (old.verified_at, old.root_url, old.not_found_url, old.expired_url, old.apple_links, old.android_links)
    IS NOT
    (new.verified_at, new.root_url, new.not_found_url, new.expired_url, new.apple_links, new.android_links)
BEGIN
    INSERT INTO outbox (changes) VALUES ('host/' || new.host);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER note_deleted_host AFTER DELETE ON domains WHEN old.verified_at IS NOT NULL BEGIN
    INSERT INTO outbox (changes) VALUES ('host/' || old.host);
END;
-- +goose StatementEnd

-- Reports that people without an account may read.
CREATE TABLE shares (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id    INTEGER NOT NULL REFERENCES accounts (id),
    digest        BLOB    NOT NULL UNIQUE,
    link_id       INTEGER NOT NULL, -- 0: not the report of a link
    hash          TEXT    NOT NULL, -- of the link
    domain_id     INTEGER, -- NULL: any
    tag           TEXT    NOT NULL, -- '': links with any tags or none
    expires_at    INTEGER, -- NULL: never
    password_hash TEXT    NOT NULL, -- '': none
    hide_targets  INTEGER NOT NULL CHECK (hide_targets IN (0, 1)),
    created_at    INTEGER NOT NULL
) STRICT;

CREATE INDEX shares_of_account ON shares (account_id, id);

CREATE TABLE webhooks (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id       INTEGER NOT NULL REFERENCES accounts (id),
    url              TEXT    NOT NULL,
    events           TEXT    NOT NULL, -- separated by spaces
    domain_id        INTEGER NOT NULL, -- of hash
    hash             TEXT    NOT NULL, -- '': any link
    tag              TEXT    NOT NULL, -- '': links with any tags or none
    people_only      INTEGER NOT NULL CHECK (people_only IN (0, 1)),
    active           INTEGER NOT NULL CHECK (active IN (0, 1)),
    off_reason       TEXT    NOT NULL DEFAULT '', -- why the service has switched it off
    secret           TEXT    NOT NULL,
    old_secret       TEXT    NOT NULL DEFAULT '',
    old_secret_until INTEGER,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    clicks_since     INTEGER NOT NULL, -- since when it is on and hears of clicks, if it does
    -- What changes with each event and delivery:
    waiting          INTEGER NOT NULL DEFAULT 0, -- bytes of data that wait; 0: no delivery waits
    dropped          INTEGER NOT NULL DEFAULT 0,
    failing_since    INTEGER,
    next_at          INTEGER NOT NULL, -- no attempt before
    holder           TEXT    NOT NULL DEFAULT '',
    leased_until     INTEGER
) STRICT;

CREATE INDEX webhooks_of_account ON webhooks (account_id, id);
CREATE INDEX webhooks_to_send ON webhooks (next_at) WHERE waiting > 0;
CREATE INDEX webhooks_of_clicks ON webhooks (account_id) WHERE active AND instr(' ' || events || ' ', ' link.clicked ') > 0;

CREATE TABLE webhook_deliveries (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id INTEGER NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    message    TEXT    NOT NULL, -- webhook-id
    event      TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    data       TEXT    NOT NULL, -- see schema.Delivery
    status     TEXT    NOT NULL DEFAULT 'waiting',
    attempts   INTEGER NOT NULL DEFAULT 0,
    error      TEXT    NOT NULL DEFAULT '',
    clicks     INTEGER NOT NULL DEFAULT 0 -- above 0: so many clicks that wait to be put into a delivery
) STRICT;

CREATE INDEX deliveries_of_webhook ON webhook_deliveries (webhook_id, id);
CREATE INDEX deliveries_waiting ON webhook_deliveries (webhook_id, id) WHERE status = 'waiting';
CREATE INDEX deliveries_finished ON webhook_deliveries (webhook_id, id) WHERE status <> 'waiting';
CREATE INDEX deliveries_shown ON webhook_deliveries (webhook_id, id) WHERE clicks = 0; -- clicks that wait are many rows

-- Up to where webhooks have heard of clicks: the marks of lanes, and where topics are read on.
CREATE TABLE heard_lanes (
    incarnation BLOB    NOT NULL,
    lane        INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    PRIMARY KEY (incarnation, lane)
) STRICT, WITHOUT ROWID;
CREATE TABLE heard_positions (
    partition   INTEGER PRIMARY KEY,
    epoch       INTEGER NOT NULL,
    next        INTEGER NOT NULL,
    last_offset INTEGER NOT NULL, -- of the last click, whose lane and number follow
    incarnation BLOB    NOT NULL,
    lane        INTEGER NOT NULL,
    seq         INTEGER NOT NULL
) STRICT;

-- Inserted into, a row of events becomes a delivery of every webhook that hears of it and has room: see schema.MaxWebhookWaiting.
CREATE VIEW events AS SELECT '' AS event, 0 AS account_id, 0 AS domain_id, '' AS hash, '' AS tags, '' AS data;
-- +goose StatementBegin
CREATE TRIGGER deliver_event INSTEAD OF INSERT ON events BEGIN
    INSERT INTO webhook_deliveries (webhook_id, message, event, at, data)
    SELECT id, 'msg_' || lower(hex(randomblob(16))), new.event, CAST(unixepoch('subsec') * 1000 AS INTEGER), new.data FROM webhooks
    WHERE account_id = new.account_id AND active AND instr(' ' || events || ' ', ' ' || new.event || ' ') > 0
        AND (hash = '' OR hash = new.hash AND domain_id = new.domain_id)
        AND (tag = '' OR instr(' ' || new.tags || ' ', ' ' || tag || ' ') > 0)
        AND waiting + octet_length(new.data) <= 67108864;
    UPDATE webhooks SET waiting = waiting + iif(waiting + octet_length(new.data) <= 67108864, octet_length(new.data), 0),
        dropped = dropped + iif(waiting + octet_length(new.data) <= 67108864, 0, 1)
    WHERE account_id = new.account_id AND active AND instr(' ' || events || ' ', ' ' || new.event || ' ') > 0
        AND (hash = '' OR hash = new.hash AND domain_id = new.domain_id)
        AND (tag = '' OR instr(' ' || new.tags || ' ', ' ' || tag || ' ') > 0);
END;
-- +goose StatementEnd

-- A link and a domain as in the data of events: see schema.LinkEvent and schema.DomainEvent.
CREATE VIEW link_events AS SELECT l.id, json_object('id', l.id, 'domain_id', l.domain_id,
    'host', coalesce((SELECT host FROM domains WHERE id = l.domain_id), ''), 'hash', l.hash, 'url', l.url, 'title', l.title,
    'tags', l.tags, 'active', l.active, 'taken_down', l.taken_down, 'forward_query', l.forward_query, 'expires_at', l.expires_at,
    'expired_url', l.expired_url, 'extension', l.extension, 'created_at', l.created_at, 'updated_at', l.updated_at) AS data
FROM links l;
CREATE VIEW domain_events AS SELECT id, json_object('id', id, 'host', host, 'verified', verified_at IS NOT NULL,
    'created_at', created_at, 'deleted', 0) AS data
FROM domains;

-- +goose StatementBegin
CREATE TRIGGER tell_new_link AFTER INSERT ON links WHEN EXISTS (SELECT 1 FROM webhooks WHERE account_id = new.account_id) BEGIN
    INSERT INTO events SELECT 'link.created', new.account_id, new.domain_id, new.hash, new.tags, data FROM link_events WHERE id = new.id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER tell_link AFTER UPDATE ON links WHEN old.ordinal > 0 AND new.ordinal > 0 AND
    (old.url, old.title, old.tags, old.active, old.taken_down, old.forward_query, old.expires_at, old.expired_url, old.extension, old.updated_at)
    IS NOT
    (new.url, new.title, new.tags, new.active, new.taken_down, new.forward_query, new.expires_at, new.expired_url, new.extension, new.updated_at)
    AND EXISTS (SELECT 1 FROM webhooks WHERE account_id = new.account_id)
BEGIN
    INSERT INTO events SELECT 'link.updated', new.account_id, new.domain_id, new.hash, old.tags || ' ' || new.tags, data
    FROM link_events WHERE id = new.id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER tell_restored_link AFTER UPDATE OF ordinal ON links WHEN old.ordinal < 0 AND new.ordinal > 0
    AND EXISTS (SELECT 1 FROM webhooks WHERE account_id = new.account_id)
BEGIN
    INSERT INTO events SELECT 'link.created', new.account_id, new.domain_id, new.hash, new.tags, data FROM link_events WHERE id = new.id;
END;
-- +goose StatementEnd
-- The event has the link as it was before its deletion.
-- +goose StatementBegin
CREATE TRIGGER tell_deleted_link BEFORE UPDATE OF ordinal ON links WHEN old.ordinal > 0 AND new.ordinal < 0
    AND EXISTS (SELECT 1 FROM webhooks WHERE account_id = new.account_id)
BEGIN
    INSERT INTO events SELECT 'link.deleted', old.account_id, old.domain_id, old.hash, old.tags, data FROM link_events WHERE id = old.id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER tell_new_domain AFTER INSERT ON domains WHEN EXISTS (SELECT 1 FROM webhooks WHERE account_id = new.account_id) BEGIN
    INSERT INTO events SELECT 'domain.changed', new.account_id, new.id, '', '', data FROM domain_events WHERE id = new.id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER tell_domain AFTER UPDATE ON domains WHEN
    (old.verified_at, old.lost_at, old.root_url, old.not_found_url, old.expired_url, old.apple_links, old.android_links)
    IS NOT
    (new.verified_at, new.lost_at, new.root_url, new.not_found_url, new.expired_url, new.apple_links, new.android_links)
    AND EXISTS (SELECT 1 FROM webhooks WHERE account_id = new.account_id)
BEGIN
    INSERT INTO events SELECT 'domain.changed', new.account_id, new.id, '', '', data FROM domain_events WHERE id = new.id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER tell_deleted_domain BEFORE DELETE ON domains WHEN EXISTS (SELECT 1 FROM webhooks WHERE account_id = old.account_id) BEGIN
    INSERT INTO events SELECT 'domain.changed', old.account_id, old.id, '', '', json_set(data, '$.deleted', 1) FROM domain_events WHERE id = old.id;
END;
-- +goose StatementEnd
