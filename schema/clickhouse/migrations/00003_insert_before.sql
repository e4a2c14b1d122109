-- The last row of a batch has the time at which its insert expires, its other rows have 0. nowInBlock, unlike now, is
-- evaluated for each block: a block that arrives late is late even if the query began in time.
ALTER TABLE {{.Rows}} {{.OnCluster}}
    ADD COLUMN IF NOT EXISTS insert_before DateTime('UTC') CODEC (ZSTD) AFTER month,
    ADD CONSTRAINT IF NOT EXISTS inserted_in_time
        CHECK insert_before = toDateTime(0, 'UTC') OR nowInBlock('UTC') <= insert_before;

{{if .Cluster}}
ALTER TABLE clicks {{.OnCluster}} ADD COLUMN IF NOT EXISTS insert_before DateTime('UTC') AFTER month;
{{end}}
