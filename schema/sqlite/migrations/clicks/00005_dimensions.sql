-- +goose Up
-- The kinds of sources are now also operating systems (kind 3) and languages (kind 4).

-- Names that come from lists: devices, browsers, operating systems, languages and countries.
CREATE TABLE names (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- The clicks of a quarter of an hour (Unix time / 900) with all dimensions, for reports of any time zone and for filters. All
-- columns that end with _id are rows of names.
CREATE TABLE facts (
    link_id     INTEGER NOT NULL,
    quarter     INTEGER NOT NULL,
    account_id  INTEGER NOT NULL,
    device_id   INTEGER NOT NULL,
    browser_id  INTEGER NOT NULL,
    os_id       INTEGER NOT NULL,
    language_id INTEGER NOT NULL,
    country_id  INTEGER NOT NULL,
    referrer    TEXT    NOT NULL,
    total       INTEGER NOT NULL,
    PRIMARY KEY (link_id, quarter, account_id, device_id, browser_id, os_id, language_id, country_id, referrer)
) STRICT, WITHOUT ROWID;

-- The first UTC day of which all clicks are in facts. Earlier releases counted the ones before.
CREATE TABLE facts_since (day INTEGER NOT NULL) STRICT;
INSERT INTO facts_since SELECT CASE WHEN EXISTS (SELECT 1 FROM counters) THEN unixepoch() / 86400 + 1 ELSE 0 END;
