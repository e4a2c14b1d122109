-- One row for each click. A batch is one INSERT, one block and one part, so it is there as a whole or not at all, and
-- with it the projections: they are part of the part.
CREATE TABLE IF NOT EXISTS {{.Rows}} {{.OnCluster}} (
    link_id         Int64                  CODEC (Delta, ZSTD),
    clicked_at      DateTime64(3, 'UTC')   CODEC (Delta, ZSTD),
    device          LowCardinality(String) CODEC (ZSTD),
    browser         LowCardinality(String) CODEC (ZSTD),
    kafka_partition Int32                  CODEC (ZSTD),
    kafka_offset    Int64                  CODEC (Delta, ZSTD),
    kafka_next      Int64                  CODEC (ZSTD), -- in the last row of a batch: its Next; else 0
    incarnation     FixedString(16)        CODEC (ZSTD),
    lane            UInt32                 CODEC (ZSTD),
    seq             UInt64                 CODEC (Delta, ZSTD),
    month           UInt32                 CODEC (ZSTD), -- 202611: of the batch's Time, so one value in a block
    PROJECTION counts (
        SELECT link_id, toDate(clicked_at), device, browser, count()
        GROUP BY link_id, toDate(clicked_at), device, browser
    ),
    PROJECTION positions (
        SELECT kafka_partition, incarnation, lane, max(kafka_next), max(seq)
        GROUP BY kafka_partition, incarnation, lane
    )
)
ENGINE = {{if .Cluster}}ReplicatedMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}'){{else}}MergeTree{{end}}
PARTITION BY month
ORDER BY (link_id, clicked_at)
SETTINGS
    -- A link's rows of a part are a few: a smaller mark has fewer others around them. Tables of before have 8192.
    index_granularity = 2048,
    -- Tokens of so many blocks are kept: of far more than come within insertTimeout.
    non_replicated_deduplication_window = 10000,
    replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 3600,
    -- An insert is answered when it would survive a power failure.
    fsync_after_insert = 1, fsync_part_directory = 1;

{{if .Cluster}}
-- A batch must stay one block: so a Kafka partition, and not a link, belongs to a shard.
CREATE TABLE IF NOT EXISTS clicks {{.OnCluster}} AS {{.Rows}}
ENGINE = Distributed('{{.Cluster}}', '{{.Database}}', '{{.Rows}}', kafka_partition);
{{end}}
