-- What a row stands for. A row of a click has 1 and 1. Old months are compacted to rows of two kinds: aggregates, which stand
-- for weight clicks on a link and day, and marks, which stand for the lane_clicks clicks that were counted of a lane. An
-- aggregate has lane_clicks 0 and kafka_partition -1, a mark has weight 0.
--
-- month is YYYYMM of the batch's Time, or 1000000 + YYYYMM of the insert if the batch is late: no insert may change a month that
-- is compacted. Rows that are copied, without insert_before, may go anywhere.
ALTER TABLE {{.Rows}} {{.OnCluster}}
    ADD COLUMN IF NOT EXISTS lane_clicks UInt64 DEFAULT 1 CODEC (ZSTD) AFTER seq,
    ADD COLUMN IF NOT EXISTS weight      UInt64 DEFAULT 1 CODEC (ZSTD) AFTER country,
    ADD CONSTRAINT IF NOT EXISTS month_is_open
        CHECK insert_before = toDateTime(0, 'UTC') OR if(month < 1000000,
            month >= toYYYYMM(nowInBlock('UTC') - INTERVAL 100 DAY), month = 1000000 + toYYYYMM(nowInBlock('UTC')));

-- They replace counts, sources, accounts, positions and log_positions, which stay while programs of earlier releases may
-- read them. A position is found among one row per partition and part, a lane by the projection's primary key.
ALTER TABLE {{.Rows}} {{.OnCluster}}
    ADD PROJECTION IF NOT EXISTS weighted_counts (
        SELECT link_id, toDate(clicked_at), device, browser, sum(weight)
        GROUP BY link_id, toDate(clicked_at), device, browser
    ),
    ADD PROJECTION IF NOT EXISTS weighted_sources (
        SELECT link_id, toDate(clicked_at), referrer, country, sumIf(weight, device != 'bot')
        GROUP BY link_id, toDate(clicked_at), referrer, country
    ),
    ADD PROJECTION IF NOT EXISTS weighted_accounts (
        SELECT account_id, toDate(clicked_at), link_id, sumIf(weight, device != 'bot'), sumIf(weight, device = 'bot')
        GROUP BY account_id, toDate(clicked_at), link_id
    ),
    ADD PROJECTION IF NOT EXISTS log_ends (
        SELECT kafka_partition, max((kafka_epoch, kafka_next, kafka_offset)),
            max((kafka_epoch, kafka_next, kafka_offset, incarnation, lane, seq))
        GROUP BY kafka_partition
    ),
    ADD PROJECTION IF NOT EXISTS lane_positions (
        SELECT kafka_partition, incarnation, lane, kafka_epoch,
            max((kafka_epoch, kafka_next, kafka_offset)), max(seq), sum(lane_clicks)
        GROUP BY kafka_partition, incarnation, lane, kafka_epoch
    );

-- In the background. Queries read the rows of a part until it has the projections.
ALTER TABLE {{.Rows}} {{.OnCluster}} MATERIALIZE PROJECTION weighted_counts, MATERIALIZE PROJECTION weighted_sources,
    MATERIALIZE PROJECTION weighted_accounts, MATERIALIZE PROJECTION log_ends, MATERIALIZE PROJECTION lane_positions
SETTINGS mutations_sync = 0;

{{if .Cluster}}
ALTER TABLE clicks {{.OnCluster}}
    ADD COLUMN IF NOT EXISTS lane_clicks UInt64 DEFAULT 1 AFTER seq,
    ADD COLUMN IF NOT EXISTS weight      UInt64 DEFAULT 1 AFTER country;
{{end}}
