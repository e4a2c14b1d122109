-- +goose Up
-- Where people's clicks came from, where that is known: referrers' hosts (kind 1) and countries (kind 2). Clicks of
-- whom neither is known have no row: they are the rest of the link's counters.
CREATE TABLE sources (
    link_id INTEGER NOT NULL,
    kind    INTEGER NOT NULL,
    day     INTEGER NOT NULL,
    name    TEXT    NOT NULL,
    total   INTEGER NOT NULL,
    PRIMARY KEY (link_id, kind, day, name)
) STRICT, WITHOUT ROWID;

-- The clicks that came with an account. A day's rows of an account stand side by side, so a batch, which is mostly of
-- one day, changes few pages.
CREATE TABLE owned (
    account_id INTEGER NOT NULL,
    day        INTEGER NOT NULL,
    link_id    INTEGER NOT NULL,
    people     INTEGER NOT NULL,
    bots       INTEGER NOT NULL,
    PRIMARY KEY (account_id, day, link_id)
) STRICT, WITHOUT ROWID;
