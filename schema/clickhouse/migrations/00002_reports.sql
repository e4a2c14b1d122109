-- For reports: whose link it was, and where the click came from. Rows of before are of account 0, and of no known
-- referrer and country.
ALTER TABLE {{.Rows}} {{.OnCluster}}
    ADD COLUMN IF NOT EXISTS account_id Int64                  CODEC (ZSTD) AFTER link_id,
    ADD COLUMN IF NOT EXISTS referrer   LowCardinality(String) CODEC (ZSTD) AFTER browser,
    ADD COLUMN IF NOT EXISTS country    LowCardinality(String) CODEC (ZSTD) AFTER referrer;

-- Bots are told from people by what is counted, not by a key, so that there are fewer rows, and so that counts of all
-- clicks cannot be read here.
ALTER TABLE {{.Rows}} {{.OnCluster}}
    ADD PROJECTION IF NOT EXISTS sources (
        SELECT link_id, toDate(clicked_at), referrer, country, countIf(device != 'bot')
        GROUP BY link_id, toDate(clicked_at), referrer, country
    ),
    ADD PROJECTION IF NOT EXISTS accounts (
        SELECT account_id, toDate(clicked_at), link_id, countIf(device != 'bot'), countIf(device = 'bot')
        GROUP BY account_id, toDate(clicked_at), link_id
    );

-- In the background, which is no longer the default. Until a part has its projections, its rows are read.
ALTER TABLE {{.Rows}} {{.OnCluster}} MATERIALIZE PROJECTION sources, MATERIALIZE PROJECTION accounts
SETTINGS mutations_sync = 0;

{{if .Cluster}}
ALTER TABLE clicks {{.OnCluster}}
    ADD COLUMN IF NOT EXISTS account_id Int64                  AFTER link_id,
    ADD COLUMN IF NOT EXISTS referrer   LowCardinality(String) AFTER browser,
    ADD COLUMN IF NOT EXISTS country    LowCardinality(String) AFTER referrer;
{{end}}
