-- +goose Up
-- Clicks are counted in recent first. When their quarter of an hour is over, they move to the settled tables in one
-- transaction. So a click on a busy link changes one row instead of seven, most of which are the same from batch to batch.
-- client has the numbers of five names, 12 bits each: device, browser, operating system, language and country.
CREATE TABLE recent (
    link_id    INTEGER NOT NULL,
    quarter    INTEGER NOT NULL,
    account_id INTEGER NOT NULL,
    client     INTEGER NOT NULL,
    referrer   TEXT    NOT NULL,
    total      INTEGER NOT NULL,
    PRIMARY KEY (link_id, quarter, account_id, client, referrer)
) STRICT, WITHOUT ROWID;

ALTER TABLE counters RENAME TO settled_counters;
ALTER TABLE totals RENAME TO settled_totals;
ALTER TABLE sources RENAME TO settled_sources;
ALTER TABLE facts RENAME TO settled_facts;

-- The names of the tables are those of views now, which have both. A key may have two rows: one that is settled, and one of
-- each recent row.
CREATE VIEW recent_facts AS
SELECT link_id, quarter, quarter / 96 AS day, account_id, client >> 48 AS device_id, client >> 36 & 4095 AS browser_id,
    client >> 24 & 4095 AS os_id, client >> 12 & 4095 AS language_id, client & 4095 AS country_id, referrer, total
FROM recent;

CREATE VIEW recent_sources AS
SELECT link_id, 1 AS kind, day, referrer AS name, device_id, total FROM recent_facts
UNION ALL SELECT link_id, 2, day, (SELECT name FROM names WHERE id = country_id), device_id, total FROM recent_facts
UNION ALL SELECT link_id, 3, day, (SELECT name FROM names WHERE id = os_id), device_id, total FROM recent_facts
UNION ALL SELECT link_id, 4, day, (SELECT name FROM names WHERE id = language_id), device_id, total FROM recent_facts;

CREATE VIEW counters AS
SELECT link_id, day, device, browser, total FROM settled_counters
UNION ALL SELECT link_id, day, (SELECT name FROM names WHERE id = device_id), (SELECT name FROM names WHERE id = browser_id), total
FROM recent_facts;

CREATE VIEW totals AS
SELECT link_id, total FROM settled_totals UNION ALL SELECT link_id, total FROM recent;

-- Without clicks of bots and those without a name, as settled_sources.
CREATE VIEW sources AS
SELECT link_id, kind, day, name, total FROM settled_sources
UNION ALL SELECT link_id, kind, day, name, total FROM recent_sources
WHERE name <> '' AND device_id IS NOT (SELECT id FROM names WHERE name = 'bot');

CREATE VIEW facts AS
SELECT link_id, quarter, account_id, device_id, browser_id, os_id, language_id, country_id, referrer, total FROM settled_facts
UNION ALL SELECT link_id, quarter, account_id, device_id, browser_id, os_id, language_id, country_id, referrer, total
FROM recent_facts;
