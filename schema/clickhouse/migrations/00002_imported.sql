-- The clicks on a link that another service, the source, has counted: all that it says about the link is one row, which is replaced as
-- a whole by the next one with a higher version. A deleted row is left out of reads with FINAL.
CREATE TABLE IF NOT EXISTS imported_clicks {{.OnCluster}} (
    link_id    Int64          CODEC (Delta, ZSTD),
    source     String         CODEC (ZSTD),
    version    UInt64         CODEC (ZSTD),
    deleted    UInt8          CODEC (ZSTD),
    account_id Int64          CODEC (ZSTD),
    total      UInt64         CODEC (ZSTD), -- of clicks
    days       Array(Date)    CODEC (Delta, ZSTD), -- ascending
    clicks     Array(UInt64)  CODEC (ZSTD), -- of days
    -- The links of an account that are imported together have neighbouring IDs.
    INDEX accounts account_id TYPE minmax GRANULARITY 1
)
ENGINE = {{if .Cluster}}ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}', '{shard}-{replica}', version, deleted){{else}}ReplacingMergeTree(version, deleted){{end}}
ORDER BY (link_id, source)
-- A row has up to 5,000 days.
SETTINGS index_granularity = 256,
    fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_compressed_bytes_to_fsync_after_merge = 1;
