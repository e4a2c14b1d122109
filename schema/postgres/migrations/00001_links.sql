-- +goose Up
CREATE TABLE accounts (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email         text        NOT NULL UNIQUE,
    password_hash text        NOT NULL,
    suspended     boolean     NOT NULL,
    link_count    bigint      NOT NULL DEFAULT 0, -- the ordinal of the account's newest link
    created_at    timestamptz NOT NULL
) WITH (fillfactor = 70); -- link_count changes with each link: leave room for the new row version on the same page

CREATE TABLE tokens (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id bigint      NOT NULL REFERENCES accounts (id),
    name       text        NOT NULL,
    prefix     text        NOT NULL,
    digest     bytea       NOT NULL UNIQUE,
    created_at timestamptz NOT NULL,
    revoked_at timestamptz
);

CREATE TABLE domains (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id  bigint      NOT NULL REFERENCES accounts (id),
    host        text        NOT NULL,
    challenge   text        NOT NULL,
    created_at  timestamptz NOT NULL,
    verified_at timestamptz,
    UNIQUE (host, account_id)
);

-- Many accounts may claim a host, and one may have it verified.
CREATE UNIQUE INDEX domains_verified ON domains (host) WHERE verified_at IS NOT NULL;

CREATE TABLE links (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id bigint      NOT NULL REFERENCES accounts (id),
    domain_id  bigint      NOT NULL, -- 0: the default domain, which has no row
    hash       text        COLLATE "C" NOT NULL,
    url        text        NOT NULL,
    active     boolean     NOT NULL,
    ordinal    bigint      NOT NULL,
    created_at timestamptz NOT NULL,
    UNIQUE (domain_id, hash),
    UNIQUE (account_id, ordinal)
);

CREATE INDEX links_of_account ON links (account_id, hash);
