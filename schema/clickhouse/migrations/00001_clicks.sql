-- One row per click. A batch is one INSERT of one block, which becomes one part: it is stored as a whole or not at all.
-- The projections are stored within the part.
--
-- What a row stands for: a row of a click has weight 1 and lane_clicks 1. Old months are compacted to rows of two kinds: aggregates,
-- which stand for weight clicks on a link and day, and marks, which stand for the lane_clicks clicks that were counted of a lane. An
-- aggregate has lane_clicks 0 and kafka_partition -1, a mark has weight 0. Clicks that another store has counted are aggregates by
-- quarter of an hour.
CREATE TABLE IF NOT EXISTS {{.Rows}} {{.OnCluster}} (
    link_id         Int64                  CODEC (Delta, ZSTD),
    account_id      Int64                  CODEC (ZSTD),
    clicked_at      DateTime64(3, 'UTC')   CODEC (Delta, ZSTD),
    device          LowCardinality(String) CODEC (ZSTD),
    browser         LowCardinality(String) CODEC (ZSTD),
    os              LowCardinality(String) CODEC (ZSTD),
    language        LowCardinality(String) CODEC (ZSTD),
    referrer        LowCardinality(String) CODEC (ZSTD),
    country         LowCardinality(String) CODEC (ZSTD),
    route           LowCardinality(String) CODEC (ZSTD),
    campaign        LowCardinality(String) CODEC (ZSTD),
    -- Who has clicked: a hash that nothing compresses; 0 if unknown, and in rows that stand for other than one click.
    visitor         UInt64                 CODEC (NONE),
    weight          UInt64 DEFAULT 1       CODEC (ZSTD),
    kafka_partition Int32                  CODEC (ZSTD),
    kafka_epoch     UInt32                 CODEC (ZSTD), -- the log that the click's record is in
    kafka_offset    Int64                  CODEC (Delta, ZSTD),
    kafka_next      Int64                  CODEC (ZSTD), -- Next of the batch in its last row, 0 in its other rows
    incarnation     FixedString(16)        CODEC (ZSTD),
    lane            UInt32                 CODEC (ZSTD),
    seq             UInt64                 CODEC (Delta, ZSTD),
    lane_clicks     UInt64 DEFAULT 1       CODEC (ZSTD),
    -- YYYYMM of the batch's Time, or 1000000 + YYYYMM of the insert if the batch is late: no insert may change a month that is
    -- compacted. One value per block. Rows that are copied, without insert_before, may go anywhere.
    month           UInt32                 CODEC (ZSTD),
    -- In the last row of a batch, the time at which its insert expires, 0 in its other rows.
    insert_before   DateTime('UTC')        CODEC (ZSTD),

    -- Sums are of people and of bots. Those of a link are by UTC day and the names of a few dimensions.
    PROJECTION link_clients (
        SELECT link_id, toDate(clicked_at), device, browser, route, sumIf(weight, device != 'bot'), sumIf(weight, device = 'bot')
        GROUP BY link_id, toDate(clicked_at), device, browser, route
    ),
    PROJECTION link_places (
        SELECT link_id, toDate(clicked_at), os, language, country, sumIf(weight, device != 'bot'), sumIf(weight, device = 'bot')
        GROUP BY link_id, toDate(clicked_at), os, language, country
    ),
    PROJECTION link_referrers (
        SELECT link_id, toDate(clicked_at), referrer, campaign, sumIf(weight, device != 'bot'), sumIf(weight, device = 'bot')
        GROUP BY link_id, toDate(clicked_at), referrer, campaign
    ),
    PROJECTION account_links (
        SELECT account_id, toDate(clicked_at), link_id, sumIf(weight, device != 'bot'), sumIf(weight, device = 'bot')
        GROUP BY account_id, toDate(clicked_at), link_id
    ),
    -- A position is found among one row per partition and part: that of the last row of a batch. The condition spares the server
    -- comparing tuples for each click.
    PROJECTION log_ends (
        SELECT kafka_partition, maxIf((kafka_epoch, kafka_next, kafka_offset, incarnation, lane, seq), kafka_next > 0)
        GROUP BY kafka_partition
    ),
    -- Lanes are found by the primary key.
    PROJECTION lane_marks (
        SELECT incarnation, lane, max(seq), sum(lane_clicks)
        GROUP BY incarnation, lane
    ),
    -- For reports of any time zone: all offsets are multiples of 15 minutes.
    PROJECTION link_quarters (
        SELECT link_id, toStartOfFifteenMinutes(clicked_at), sumIf(weight, device != 'bot'), sumIf(weight, device = 'bot')
        GROUP BY link_id, toStartOfFifteenMinutes(clicked_at)
    ),
    PROJECTION account_quarters (
        SELECT account_id, toStartOfFifteenMinutes(clicked_at), sumIf(weight, device != 'bot'), sumIf(weight, device = 'bot')
        GROUP BY account_id, toStartOfFifteenMinutes(clicked_at)
    ),
    -- Visitors of UTC days.
    PROJECTION link_visitors (
        SELECT link_id, toDate(clicked_at), sumIf(weight, device != 'bot'), sumIf(weight, device = 'bot'),
            uniqCombined64StateIf(16)(visitor, visitor != 0)
        GROUP BY link_id, toDate(clicked_at)
    ),
    PROJECTION account_visitors (
        SELECT account_id, toDate(clicked_at), sumIf(weight, device != 'bot'), sumIf(weight, device = 'bot'),
            uniqCombined64StateIf(16)(visitor, visitor != 0)
        GROUP BY account_id, toDate(clicked_at)
    ),
    -- For filters: the clicks of a day with all dimensions. The owner and the day come first, so that a report of an account reads a
    -- range, and one of a link few granules per day.
    PROJECTION dimensions (
        SELECT account_id, toDate(clicked_at), link_id, device, browser, os, language, referrer, country, route, campaign,
            sumIf(weight, device != 'bot'), sumIf(weight, device = 'bot')
        GROUP BY account_id, toDate(clicked_at), link_id, device, browser, os, language, referrer, country, route, campaign
    ),
    -- Clicks in the order of an account, for what is not of whole UTC days.
    PROJECTION account_rows (
        SELECT account_id, clicked_at, link_id, device, browser, os, language, referrer, country, route, campaign, weight, visitor
        ORDER BY account_id, clicked_at
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
    fsync_after_insert = 1, fsync_part_directory = 1,
    -- A query of a link reads a granule per column and part: 8 KiB of a column of names. The server decompresses whole blocks, of at
    -- least 64 KiB by default.
    min_compress_block_size = 16384;

{{if .Cluster}}
-- The sharding key is the Kafka partition and not the link, so that a batch stays one block on one shard.
CREATE TABLE IF NOT EXISTS clicks {{.OnCluster}} AS {{.Rows}}
ENGINE = Distributed('{{.Cluster}}', '{{.Database}}', '{{.Rows}}', kafka_partition);
{{end}}

-- Only the tables with the rows have the constraints. nowInBlock, unlike now, is evaluated for each block: a block that arrives late
-- is late even if the query began in time.
ALTER TABLE {{.Rows}} {{.OnCluster}}
    ADD CONSTRAINT IF NOT EXISTS inserted_in_time
        CHECK insert_before = toDateTime(0, 'UTC') OR nowInBlock('UTC') <= insert_before,
    ADD CONSTRAINT IF NOT EXISTS month_is_open
        CHECK insert_before = toDateTime(0, 'UTC') OR if(month < 1000000,
            month >= toYYYYMM(nowInBlock('UTC') - INTERVAL 100 DAY), month = 1000000 + toYYYYMM(nowInBlock('UTC')));

-- Numbers of a lane, first to last, that were missing when the click after them was counted, at kafka_offset of
-- kafka_partition. They name what the counts of lane_marks show. They are inserted before the batch that they belong to, so
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

-- The months that are compacted, and the first day from which the hours of clicks are known.
CREATE TABLE IF NOT EXISTS compacted_months {{.OnCluster}} (
    month       UInt32,
    hours_since Date
)
ENGINE = {{if .Cluster}}ReplicatedReplacingMergeTree('/clickhouse/tables/{uuid}', '{shard}-{replica}'){{else}}ReplacingMergeTree{{end}}
ORDER BY month;

-- The visitors of compacted months, as if at 00:00 UTC, and those that another store has counted, by the quarter of an hour: of a link,
-- or of all links of an account (owner: its ID with a minus sign). A visitor who is also in a row of clicks counts once.
CREATE TABLE IF NOT EXISTS kept_visitors {{.OnCluster}} (
    owner    Int64,
    quarter  DateTime('UTC'),
    visitors AggregateFunction(uniqCombined64(16), UInt64)
)
ENGINE = {{if .Cluster}}ReplicatedAggregatingMergeTree('/clickhouse/tables/{uuid}', '{shard}-{replica}'){{else}}AggregatingMergeTree{{end}}
ORDER BY (owner, quarter)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_compressed_bytes_to_fsync_after_merge = 1;
