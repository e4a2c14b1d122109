-- +goose Up
-- The offset of the next record of each partition.
CREATE TABLE positions (
    partition INTEGER PRIMARY KEY,
    next      INTEGER NOT NULL
) STRICT;

-- The highest seq counted of each lane.
CREATE TABLE marks (
    partition   INTEGER NOT NULL,
    incarnation BLOB    NOT NULL,
    lane        INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    PRIMARY KEY (partition, incarnation, lane)
) STRICT, WITHOUT ROWID;

-- The number of clicks. day is the UTC day, counted from 1970-01-01.
CREATE TABLE counters (
    link_id INTEGER NOT NULL,
    day     INTEGER NOT NULL,
    device  TEXT    NOT NULL,
    browser TEXT    NOT NULL,
    total   INTEGER NOT NULL,
    PRIMARY KEY (link_id, day, device, browser)
) STRICT, WITHOUT ROWID;

-- The sum of a link's counters, for lists of links. It changes in the same transactions as they do.
CREATE TABLE totals (
    link_id INTEGER PRIMARY KEY,
    total   INTEGER NOT NULL
) STRICT;
