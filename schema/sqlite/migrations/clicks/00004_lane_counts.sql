-- +goose Up
-- The number of clicks counted in the lane, for those who check that none is missing. unknown is how many numbers belong to
-- releases that did not store it: all up to seq where known is behind seq, because such a release set seq alone.
ALTER TABLE marks ADD COLUMN clicks  INTEGER NOT NULL DEFAULT 0;
ALTER TABLE marks ADD COLUMN known   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE marks ADD COLUMN unknown INTEGER NOT NULL DEFAULT 0;

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
