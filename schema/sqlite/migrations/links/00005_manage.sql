-- +goose Up
ALTER TABLE links ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE links ADD COLUMN tags TEXT NOT NULL DEFAULT ''; -- separated by spaces
ALTER TABLE links ADD COLUMN expires_at INTEGER; -- NULL: never
ALTER TABLE links ADD COLUMN expired_url TEXT NOT NULL DEFAULT ''; -- '': none
ALTER TABLE links ADD COLUMN forward_query INTEGER NOT NULL DEFAULT 0 CHECK (forward_query IN (0, 1));
ALTER TABLE links ADD COLUMN updated_at INTEGER; -- NULL: not since created_at

-- A deleted link keeps its row, which reserves its hash. Its ordinal is its id times -1, so that no list meets it.
ALTER TABLE accounts ADD COLUMN deleted_links INTEGER NOT NULL DEFAULT 0; -- of the links that link_count counts
-- How many links of each 1024 ordinals were deleted: see schema.OrdinalGap.
CREATE TABLE link_gaps (
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    block      INTEGER NOT NULL,
    missing    INTEGER NOT NULL,
    PRIMARY KEY (account_id, block)
) STRICT, WITHOUT ROWID;

CREATE INDEX links_of_domain ON links (domain_id, ordinal) WHERE domain_id <> 0 AND ordinal > 0;
