-- +goose Up
-- How far each partition has been counted: the epoch of its log, the offset of the next record, and the last counted click.
CREATE TABLE positions (
    partition   INTEGER PRIMARY KEY,
    epoch       INTEGER NOT NULL,
    next        INTEGER NOT NULL,
    last_offset INTEGER NOT NULL,
    incarnation BLOB    NOT NULL,
    lane        INTEGER NOT NULL
) STRICT;

-- The highest seq counted of each lane, and the number of clicks counted in it, for those who check that none is missing.
CREATE TABLE marks (
    partition   INTEGER NOT NULL,
    incarnation BLOB    NOT NULL,
    lane        INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    clicks      INTEGER NOT NULL,
    PRIMARY KEY (partition, incarnation, lane)
) STRICT, WITHOUT ROWID;

-- Numbers of a lane that were missing when the click after them was counted, at offset of partition. found is Unix time.
CREATE TABLE gaps (
    incarnation BLOB    NOT NULL,
    lane        INTEGER NOT NULL,
    first       INTEGER NOT NULL,
    last        INTEGER NOT NULL,
    partition   INTEGER NOT NULL,
    offset      INTEGER NOT NULL,
    found       INTEGER NOT NULL,
    PRIMARY KEY (incarnation, lane, first)
) STRICT, WITHOUT ROWID;

-- Names that come from lists: devices, browsers, operating systems, languages and countries. The numbers of bots and of names that are
-- not in the lists are fixed.
CREATE TABLE names (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

INSERT INTO names (id, name) VALUES (1, 'bot'), (2, 'Other');

-- The clicks on all links of an account by quarter of an hour (Unix time / 900), for reports of any time zone and live counts: reading
-- them does not take longer with more links. They change with each batch, in few rows.
CREATE TABLE owned_quarters (
    account_id INTEGER NOT NULL,
    quarter    INTEGER NOT NULL,
    people     INTEGER NOT NULL,
    bots       INTEGER NOT NULL,
    PRIMARY KEY (account_id, quarter)
) STRICT, WITHOUT ROWID;

-- Clicks are counted in recent first. When their quarter of an hour is over, they move to the settled tables in one transaction. So a
-- click on a busy link changes one row instead of twenty, most of which are the same from batch to batch. The last columns of the key
-- are those that hardly differ among the rows of a link: fewer columns are compared.
-- client has the numbers of the click's names, 10 bits each, the device in the lowest bits; see listed in dimension.go.
CREATE TABLE recent (
    link_id    INTEGER NOT NULL,
    quarter    INTEGER NOT NULL,
    account_id INTEGER NOT NULL,
    client     INTEGER NOT NULL,
    referrer   TEXT    NOT NULL,
    route      TEXT    NOT NULL,
    campaign   TEXT    NOT NULL,
    total      INTEGER NOT NULL,
    PRIMARY KEY (link_id, client, referrer, route, campaign, quarter, account_id)
) STRICT, WITHOUT ROWID;

-- The rows of recent whose quarter is over: the clicks with all dimensions, for filters and for parts of UTC days.
CREATE TABLE settled_facts (
    link_id    INTEGER NOT NULL,
    quarter    INTEGER NOT NULL,
    account_id INTEGER NOT NULL,
    client     INTEGER NOT NULL,
    referrer   TEXT    NOT NULL,
    route      TEXT    NOT NULL,
    campaign   TEXT    NOT NULL,
    total      INTEGER NOT NULL,
    PRIMARY KEY (link_id, quarter, account_id, client, referrer, route, campaign)
) STRICT, WITHOUT ROWID;

-- The sums of settled_facts by link, day and name of one dimension: 0 for referrers, -1 for routes and -2 for campaigns, which are
-- stored themselves, and 1 and up for the dimensions in a client, whose names are rows of table names.
CREATE TABLE settled_names (
    link_id   INTEGER NOT NULL,
    dimension INTEGER NOT NULL,
    day       INTEGER NOT NULL,
    name      ANY     NOT NULL,
    people    INTEGER NOT NULL,
    bots      INTEGER NOT NULL,
    PRIMARY KEY (link_id, dimension, day, name)
) STRICT, WITHOUT ROWID;

-- The same by account, for reports of all its links.
CREATE TABLE settled_owned_names (
    account_id INTEGER NOT NULL,
    dimension  INTEGER NOT NULL,
    day        INTEGER NOT NULL,
    name       ANY     NOT NULL,
    people     INTEGER NOT NULL,
    bots       INTEGER NOT NULL,
    PRIMARY KEY (account_id, dimension, day, name)
) STRICT, WITHOUT ROWID;

-- The sums of settled_facts by link and quarter of an hour, for the series of a report.
CREATE TABLE settled_quarters (
    link_id INTEGER NOT NULL,
    quarter INTEGER NOT NULL,
    people  INTEGER NOT NULL,
    bots    INTEGER NOT NULL,
    PRIMARY KEY (link_id, quarter)
) STRICT, WITHOUT ROWID;

-- The sums of settled_facts by link, for lists of links.
CREATE TABLE settled_totals (
    link_id INTEGER PRIMARY KEY,
    total   INTEGER NOT NULL
) STRICT;

-- The same by account, UTC day and link, for its most clicked links. The rows of an account and a day are neighbours.
CREATE TABLE settled_owned (
    account_id INTEGER NOT NULL,
    day        INTEGER NOT NULL,
    link_id    INTEGER NOT NULL,
    people     INTEGER NOT NULL,
    bots       INTEGER NOT NULL,
    PRIMARY KEY (account_id, day, link_id)
) STRICT, WITHOUT ROWID;

-- The visitors of a link, or of all links of an account (owner: its ID with a minus sign), on a UTC day: see visitor.go for the bytes.
CREATE TABLE visitors (
    owner    INTEGER NOT NULL,
    day      INTEGER NOT NULL,
    visitors BLOB    NOT NULL,
    PRIMARY KEY (owner, day)
) STRICT;

-- The visitors of clicks that are not in table visitors yet, or not all of them: see visitor_log.go for the bytes.
CREATE TABLE visitor_log (
    id     INTEGER PRIMARY KEY,
    visits BLOB    NOT NULL
) STRICT;
