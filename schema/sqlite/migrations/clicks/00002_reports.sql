-- +goose Up
-- Where people's clicks came from: hosts of referrers (kind 1) and countries (kind 2). A click without a referrer, or
-- without a country, has no row of that kind: reports compute these from the link's counters.
CREATE TABLE sources (
    link_id INTEGER NOT NULL,
    kind    INTEGER NOT NULL,
    day     INTEGER NOT NULL,
    name    TEXT    NOT NULL,
    total   INTEGER NOT NULL,
    PRIMARY KEY (link_id, kind, day, name)
) STRICT, WITHOUT ROWID;

-- The clicks on each account's links. The rows of an account and a day are neighbours, so a batch, whose clicks are
-- mostly of one day, changes few pages.
CREATE TABLE owned (
    account_id INTEGER NOT NULL,
    day        INTEGER NOT NULL,
    link_id    INTEGER NOT NULL,
    people     INTEGER NOT NULL,
    bots       INTEGER NOT NULL,
    PRIMARY KEY (account_id, day, link_id)
) STRICT, WITHOUT ROWID;
