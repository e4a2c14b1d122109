-- +goose Up
-- The sums of owned over the links, for pages that show days of an account: reading them does not take longer with more links. They
-- change in the same transactions as owned.
CREATE TABLE owned_days (
    account_id INTEGER NOT NULL,
    day        INTEGER NOT NULL,
    people     INTEGER NOT NULL,
    bots       INTEGER NOT NULL,
    PRIMARY KEY (account_id, day)
) STRICT, WITHOUT ROWID;
INSERT INTO owned_days SELECT account_id, day, sum(people), sum(bots) FROM owned GROUP BY account_id, day;
