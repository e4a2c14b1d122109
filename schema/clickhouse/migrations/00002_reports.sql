-- For reports: the owner of the link, and where the click came from. Older rows have account 0, and neither referrer nor
-- country.
ALTER TABLE {{.Rows}} {{.OnCluster}}
    ADD COLUMN IF NOT EXISTS account_id Int64                  CODEC (ZSTD) AFTER link_id,
    ADD COLUMN IF NOT EXISTS referrer   LowCardinality(String) CODEC (ZSTD) AFTER browser,
    ADD COLUMN IF NOT EXISTS country    LowCardinality(String) CODEC (ZSTD) AFTER referrer;

-- Bots have a counter of their own instead of a key, which makes fewer rows. Queries that count all clicks do not match
-- these projections.
ALTER TABLE {{.Rows}} {{.OnCluster}}
    ADD PROJECTION IF NOT EXISTS sources (
        SELECT link_id, toDate(clicked_at), referrer, country, countIf(device != 'bot')
        GROUP BY link_id, toDate(clicked_at), referrer, country
    ),
    ADD PROJECTION IF NOT EXISTS accounts (
        SELECT account_id, toDate(clicked_at), link_id, countIf(device != 'bot'), countIf(device = 'bot')
        GROUP BY account_id, toDate(clicked_at), link_id
    );

-- In the background, which newer servers do only if told. Queries read the rows of a part until it has its projections.
ALTER TABLE {{.Rows}} {{.OnCluster}} MATERIALIZE PROJECTION sources, MATERIALIZE PROJECTION accounts
SETTINGS mutations_sync = 0;

{{if .Cluster}}
ALTER TABLE clicks {{.OnCluster}}
    ADD COLUMN IF NOT EXISTS account_id Int64                  AFTER link_id,
    ADD COLUMN IF NOT EXISTS referrer   LowCardinality(String) AFTER browser,
    ADD COLUMN IF NOT EXISTS country    LowCardinality(String) AFTER referrer;
{{end}}
