-- Numbers of a lane, first to last, that were missing when the click after them was counted, at kafka_offset of
-- kafka_partition. They name what the counts of lane_positions show. They are inserted before the batch that they belong to, so
-- there may be more of them than clicks are missing, if the batch was not counted then.
CREATE TABLE IF NOT EXISTS click_gaps {{.OnCluster}} (
    incarnation     FixedString(16),
    lane            UInt32,
    first           UInt64,
    last            UInt64,
    kafka_partition Int32,
    kafka_offset    Int64,
    found           DateTime('UTC')
)
ENGINE = {{if .Cluster}}ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}', '{shard}-{replica}'){{else}}ReplacingMergeTree{{end}}
ORDER BY (incarnation, lane, first);
