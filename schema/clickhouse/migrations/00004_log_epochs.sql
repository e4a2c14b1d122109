-- The log that a click's record is in. The projection has each lane's place in the order of all batches: first by
-- kafka_epoch, then by kafka_next. The greatest one is the position, and its kafka_offset that of the last counted click.
-- The projection "positions" stays while workers of earlier releases may read it.
ALTER TABLE {{.Rows}} {{.OnCluster}}
    ADD COLUMN IF NOT EXISTS kafka_epoch UInt32 CODEC (ZSTD) AFTER kafka_partition;

ALTER TABLE {{.Rows}} {{.OnCluster}}
    ADD PROJECTION IF NOT EXISTS log_positions (
        SELECT kafka_partition, incarnation, lane, max((kafka_epoch, kafka_next, kafka_offset)), max(seq)
        GROUP BY kafka_partition, incarnation, lane
    );

-- In the background. Queries read the rows of a part until it has the projection.
ALTER TABLE {{.Rows}} {{.OnCluster}} MATERIALIZE PROJECTION log_positions SETTINGS mutations_sync = 0;

{{if .Cluster}}
ALTER TABLE clicks {{.OnCluster}} ADD COLUMN IF NOT EXISTS kafka_epoch UInt32 AFTER kafka_partition;
{{end}}
