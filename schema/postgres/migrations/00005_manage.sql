-- +goose Up
LOCK TABLE accounts, links; -- in the order of statements that create links, which programs of the earlier release execute meanwhile
ALTER TABLE links ADD COLUMN title text NOT NULL DEFAULT '';
ALTER TABLE links ADD COLUMN tags text NOT NULL DEFAULT ''; -- separated by spaces
ALTER TABLE links ADD COLUMN expires_at timestamptz; -- NULL: never
ALTER TABLE links ADD COLUMN expired_url text NOT NULL DEFAULT ''; -- '': none
ALTER TABLE links ADD COLUMN forward_query boolean NOT NULL DEFAULT false;
ALTER TABLE links ADD COLUMN updated_at timestamptz; -- NULL: not since created_at

-- A deleted link keeps its row, which reserves its hash. Its ordinal is its id times -1, so that no list meets it.
ALTER TABLE accounts ADD COLUMN deleted_links bigint NOT NULL DEFAULT 0; -- of the links that link_count counts
-- How many links of each 1024 ordinals were deleted: see schema.OrdinalGap.
CREATE TABLE link_gaps (
    account_id bigint NOT NULL REFERENCES accounts (id),
    block      bigint NOT NULL,
    missing    bigint NOT NULL,
    PRIMARY KEY (account_id, block)
) WITH (fillfactor = 70);

CREATE INDEX links_of_domain ON links (domain_id, ordinal) WHERE domain_id <> 0 AND ordinal > 0;
