-- One row per click. A batch is one INSERT of one block, which becomes one part: it is stored as a whole or not at all.
-- The projections are stored within the part.
CREATE TABLE IF NOT EXISTS {{.Rows}} {{.OnCluster}} (
    link_id         Int64                  CODEC (Delta, ZSTD),
    clicked_at      DateTime64(3, 'UTC')   CODEC (Delta, ZSTD),
    device          LowCardinality(String) CODEC (ZSTD),
    browser         LowCardinality(String) CODEC (ZSTD),
    kafka_partition Int32                  CODEC (ZSTD),
    kafka_offset    Int64                  CODEC (Delta, ZSTD),
    kafka_next      Int64                  CODEC (ZSTD), -- Next of the batch in its last row, 0 in its other rows
    incarnation     FixedString(16)        CODEC (ZSTD),
    lane            UInt32                 CODEC (ZSTD),
    seq             UInt64                 CODEC (Delta, ZSTD),
    month           UInt32                 CODEC (ZSTD), -- such as 202611, from the batch's Time: one value per block
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
    -- How many deduplication tokens are kept: far more than there are inserts within insertTimeout.
    non_replicated_deduplication_window = 10000,
    replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 3600,
    -- An insert is answered once it survives a power failure.
    fsync_after_insert = 1, fsync_part_directory = 1;

{{if .Cluster}}
-- The sharding key is the Kafka partition and not the link, so that a batch stays one block on one shard.
CREATE TABLE IF NOT EXISTS clicks {{.OnCluster}} AS {{.Rows}}
ENGINE = Distributed('{{.Cluster}}', '{{.Database}}', '{{.Rows}}', kafka_partition);
{{end}}
