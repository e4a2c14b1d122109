-- +goose Up
-- The path of a click behind the link's alias is a name of every click. Settled sums have no rows for clicks without a path, which most
-- are: they are the other clicks of the day.
CREATE TABLE recent_with_paths (
    link_id    INTEGER NOT NULL,
    quarter    INTEGER NOT NULL,
    account_id INTEGER NOT NULL,
    client     INTEGER NOT NULL,
    referrer   TEXT    NOT NULL,
    route      TEXT    NOT NULL,
    campaign   TEXT    NOT NULL,
    path       TEXT    NOT NULL,
    total      INTEGER NOT NULL,
    PRIMARY KEY (link_id, client, referrer, route, campaign, path, quarter, account_id)
) STRICT, WITHOUT ROWID;

INSERT INTO recent_with_paths SELECT link_id, quarter, account_id, client, referrer, route, campaign, '', total FROM recent;
DROP TABLE recent;
ALTER TABLE recent_with_paths RENAME TO recent;

CREATE TABLE facts_with_paths (
    link_id    INTEGER NOT NULL,
    quarter    INTEGER NOT NULL,
    account_id INTEGER NOT NULL,
    client     INTEGER NOT NULL,
    referrer   TEXT    NOT NULL,
    route      TEXT    NOT NULL,
    campaign   TEXT    NOT NULL,
    path       TEXT    NOT NULL,
    total      INTEGER NOT NULL,
    PRIMARY KEY (link_id, quarter, account_id, client, referrer, route, campaign, path)
) STRICT, WITHOUT ROWID;

INSERT INTO facts_with_paths SELECT link_id, quarter, account_id, client, referrer, route, campaign, '', total FROM settled_facts;
DROP TABLE settled_facts;
ALTER TABLE facts_with_paths RENAME TO settled_facts;
