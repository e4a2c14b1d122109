-- +goose Up
-- The clicks on a link that another service, the source, has counted: all that it says about the link.
CREATE TABLE imported (
    link_id    INTEGER NOT NULL,
    source     TEXT    NOT NULL,
    account_id INTEGER NOT NULL,
    clicks     INTEGER NOT NULL,
    PRIMARY KEY (link_id, source)
) STRICT, WITHOUT ROWID;

CREATE INDEX imported_of_accounts ON imported (account_id, clicks);

-- The same by UTC day.
CREATE TABLE imported_days (
    account_id INTEGER NOT NULL,
    day        INTEGER NOT NULL,
    link_id    INTEGER NOT NULL,
    source     TEXT    NOT NULL,
    clicks     INTEGER NOT NULL,
    PRIMARY KEY (account_id, day, link_id, source)
) STRICT, WITHOUT ROWID;

CREATE INDEX imported_days_of_links ON imported_days (link_id, day, clicks);
