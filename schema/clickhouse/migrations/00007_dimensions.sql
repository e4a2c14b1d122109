-- What reports break clicks down by besides device, browser, referrer and country. Older rows have neither.
ALTER TABLE {{.Rows}} {{.OnCluster}}
    ADD COLUMN IF NOT EXISTS os       LowCardinality(String) CODEC (ZSTD) AFTER country,
    ADD COLUMN IF NOT EXISTS language LowCardinality(String) CODEC (ZSTD) AFTER os;

-- For reports of any time zone: all offsets are multiples of 15 minutes. For filters: the clicks of a day with all dimensions. The
-- owner and the day come first, so that a report of an account reads a range, and one of a link few granules per day.
ALTER TABLE {{.Rows}} {{.OnCluster}}
    ADD PROJECTION IF NOT EXISTS link_quarters (
        SELECT link_id, toStartOfFifteenMinutes(clicked_at), sumIf(weight, device != 'bot'), sumIf(weight, device = 'bot')
        GROUP BY link_id, toStartOfFifteenMinutes(clicked_at)
    ),
    ADD PROJECTION IF NOT EXISTS account_quarters (
        SELECT account_id, toStartOfFifteenMinutes(clicked_at), sumIf(weight, device != 'bot'), sumIf(weight, device = 'bot')
        GROUP BY account_id, toStartOfFifteenMinutes(clicked_at)
    ),
    ADD PROJECTION IF NOT EXISTS link_systems (
        SELECT link_id, toDate(clicked_at), os, language, sumIf(weight, device != 'bot')
        GROUP BY link_id, toDate(clicked_at), os, language
    ),
    ADD PROJECTION IF NOT EXISTS dimensions (
        SELECT account_id, toDate(clicked_at), link_id, device, browser, os, language, referrer, country, sum(weight)
        GROUP BY account_id, toDate(clicked_at), link_id, device, browser, os, language, referrer, country
    );

-- In the background. Queries read the rows of a part until it has the projections.
ALTER TABLE {{.Rows}} {{.OnCluster}} MATERIALIZE PROJECTION link_quarters, MATERIALIZE PROJECTION account_quarters,
    MATERIALIZE PROJECTION link_systems, MATERIALIZE PROJECTION dimensions
SETTINGS mutations_sync = 0;

-- The months of which less is known than of rows of clicks, and the first day from which it is more: with the hours of clicks, and
-- with all dimensions together.
CREATE TABLE IF NOT EXISTS compacted_months {{.OnCluster}} (
    month         UInt32,
    hours_since   Date,
    filters_since Date
)
ENGINE = {{if .Cluster}}ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}', '{shard}-{replica}'){{else}}ReplacingMergeTree{{end}}
ORDER BY month;

{{if .Cluster}}
ALTER TABLE clicks {{.OnCluster}}
    ADD COLUMN IF NOT EXISTS os       LowCardinality(String) AFTER country,
    ADD COLUMN IF NOT EXISTS language LowCardinality(String) AFTER os;
{{else}}
-- Earlier releases did not list them. No month that is younger was compacted.
INSERT INTO compacted_months (month, hours_since)
SELECT DISTINCT month, addMonths(makeDate(intDiv(month % 1000000, 100), month % 100, 1), 1) FROM clicks
WHERE month % 1000000 < toYYYYMM(now('UTC') - INTERVAL 100 DAY) AND lane_clicks = 0 AND weight > 0;
{{end}}
