// Package clickhouse counts clicks in ClickHouse 25.8 or later.
//
// # Exactly once
//
// ClickHouse has no transactions, but a batch is one INSERT of one block, which becomes one part of the table or none.
// The table is the source of truth for the position of a partition: the last row of a batch contains the batch's Next.
// An insert carries a deduplication token made of the partition and the batch's Base, and a table accepts a token once.
// Of two workers that count the records from the same Base, one succeeds. After each insert the store looks for the
// batch's last row, because ClickHouse does not report whether it dropped a block as a duplicate.
//
//	worker                          table clicks
//	position = max(kafka_next)  ──▶ 1500
//	insert 1500…1999, token 0/0.1500 ▶ new part, or dropped: the token is known
//	count of the last row       ──▶ 1: counted
//	                                0 and position > 1500: another worker was faster
//	                                0 and position = 1500: the part was lost, try the next token
//
// The token alone is not enough. The server records it before the part exists, or, after a power failure, without the
// part; and it may forget a token whose part exists (ClickHouse issue 111577). Therefore a worker starts from the table
// and never from what it sent. If the server drops a block although nothing follows Base, the token was lost together
// with its part, and the store tries the next token.
//
// The server remembers a limited number of tokens. A worker that is suspended between its check of the position and its
// insert, with its virtual machine for example, may send the insert when its token is forgotten. Therefore the insert
// carries the time until which it is valid, 30 s after the check by the server's clock, and a constraint of the table
// refuses it later. The bound holds unless the server's clock is set back by more than that meanwhile, and as long as a
// partition has fewer inserts in that time than there are tokens (10,000). To copy rows into the table, leave out the
// column insert_before.
//
// # Months
//
// The table is partitioned by month, and old months are compacted: see Compactor. A row stands for weight clicks in
// reports and for lane_clicks clicks of its lane.
//
//	row        weight  lane_clicks  kafka_partition  incarnation, lane, seq
//	click      1       1            its partition    of the click
//	aggregate  n       0            -1               none
//	mark       0       n            its partition    the lane, its highest seq; kafka_epoch, _next, _offset: its position
//
// A token fences the inserts of one month. Which month a batch gets, and when a month is closed, is decided by the
// server's clock; see month.go.
//
// # Reports
//
// A report counts clicks by period and by the names of each dimension. All its counts are of one moment. Its time is
// whole UTC days, which projections have as sums, and up to two edges, parts of UTC days where the bounds are midnights
// of another time zone. Edges are read as rows, and the store adds them to the sums of the days.
//
//	counts                        whole UTC days                              edges
//	periods of links              link_quarters, by the quarter of an hour    link_quarters
//	periods of an account         account_quarters, by the quarter of an hour account_quarters
//	names of links                link_clients, link_places, link_referrers   clicks, in the order of links
//	links among those             link_clients                                clicks, in the order of links
//	names of an account           dimensions, all names together              account_rows, in the order of accounts
//	visitors                      link_visitors, account_visitors               all from clicks or account_rows
//	links of an account           account_links                               account_rows, in the order of accounts
//	with a filter, names, links   dimensions                                  clicks or account_rows
//	with a filter, periods        dimensions, if all bounds begin UTC days    else all from clicks or account_rows
//
// Planning takes most of the time of a report of a link. Therefore each query reads one projection, which its settings
// name, and the queries of a report run at the same time; the edges of all names are one query with a set of groups per
// projection. If the bounds begin UTC days, the periods of links and of filtered clicks are counted together with
// devices, browsers and routes. The store ranks the names. The server does so only where there may be too many of them
// to send: the referrers and the links of an account, and of more than 100 days.
//
// The store compares how many clicks the queries have counted. Counts only grow, so queries with equal totals are of
// one moment. If clicks are counted meanwhile, the report is read again, at last by one query: on one server a union of
// all queries, which reads one snapshot, on a cluster one scan of all rows of the report.
//
// Visitors are states of uniqCombined64 by UTC day, which take the server 0.2 ms each to merge once a day has more than
// 2048 visitors. If bounds do not begin UTC days, the hashes in the rows of all of the time are counted, which takes 50
// to 90 ns per row: some 350 ms for a link with 4 million clicks. States by quarter or half of an hour take as long. A
// filtered report has no visitors. Table kept_visitors has the states of compacted months and of other stores, which
// are united with those of the rows; most reports find nothing there.
//
// schema.Dimensions and linkGroups generate the columns of inserts, the statements of compaction and the queries of
// reports. Migrations write columns and projections out: a released one stays as it is. link_clients also answers
// statistics. A referrer is grouped with a campaign and a path only: with other names it would make hundreds of
// times as many rows.
//
// Of the server's CPU time for a large batch of clicks on a million links, the table takes a fifth and the projection
// dimensions a third. Without dimensions, a filtered report of a link with 20 million clicks would take ten times as
// long. Aggregates of tuples are slow: log_ends compares those of the last row of each batch only. For a batch of few
// clicks each projection takes the same, a twentieth of the insert.
//
// A link has about schema.MaxCombinations rows per UTC day in dimensions, at most: see package namebound.
//
// Compaction keeps all dimensions and the UTC day. compacted_months says from which day on hours are known, see
// ClickStore.ReportDetail.
//
// # Imported clicks
//
// What a source says about a link is one row of table imported_clicks, with an array of days and one of clicks. So a
// replacement is one insert of one row: no query sees a part of it, and a repetition inserts the same once more, with a
// higher version. Reads take the row with the highest version (FINAL). Weighted rows of clicks, as compaction makes
// them, could not be replaced without replacing a partition, and would be people in every projection.
//
// Imported clicks are parts of the queries of statistics and counts. A report reads them by one query before all
// others. The links that have any are pinned: the server returns their clicks however few they are, and the store ranks
// the sums.
//
// # Clusters
//
// With Config.Cluster, each node keeps rows in a ReplicatedMergeTree table, and a Distributed table unites them. The
// configuration of the servers defines the cluster, with internal_replication, and the macros shard and replica. Two
// shards without replicas pass the tests of deploy/test/outside/shards. No replicated cluster has been tested yet.
//
// The sharding key is the Kafka partition and not the link: a batch whose clicks went to several shards could be
// counted in part. The clicks of a link are therefore on all shards, whose projections are added up. Add shards only
// while no worker runs, because each shard has its own tokens.
//
//   - distributed_foreground_insert: the shard, and not a queue, answers an insert.
//   - insert_quorum = auto: most replicas of the shard have an insert before it is answered, so the loss of one replica
//     loses no answered insert. Quorums are parallel, which is the default: otherwise workers of different partitions
//     would block each other.
//   - load_balancing = in_order: workers write to and read from the same replica of a shard while it is up.
//   - select_sequential_consistency has no effect with parallel quorums. A replica that lags may return an old
//     position; a batch from there has a token that Keeper knows, so it is rejected, and the worker reads the position
//     again. Counts may lag as much as a replica does.
//   - enable_shared_storage_snapshot_in_query works on one server. On a cluster, reports compare the totals of their
//     parts, see ClickStore.Report.
package clickhouse
