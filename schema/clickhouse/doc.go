// Package clickhouse counts clicks in ClickHouse 25.8 or later.
//
// # Exactly once
//
// ClickHouse has no transactions, but a batch is one INSERT of one block, which becomes one part of the table or none.
// The table is the source of truth for how far a partition has been counted: a batch's last row says where it ends. An
// insert carries a token that is made of the partition and of the batch's Base, and a table takes a token once: of
// two workers that count the records after the same Base, one succeeds. After each insert its last row is looked up,
// since ClickHouse does not say whether it has dropped a block.
//
// A token alone would not do. The server notes it before the part is there, or, after a power failure, without it; and
// it may forget it while the part stays (ClickHouse issue 111577). So a worker begins from the table and never from
// what it sent; and where the server drops a block though nothing has come after Base, the token is lost together with
// its part, and the next one is tried.
//
// The server remembers a limited number of tokens. A worker that is suspended between its check of the position and its
// insert, with its virtual machine for example, may send the insert when its token is forgotten. Therefore the insert
// carries the time until which it is valid, 30 s after the check by the server's clock, and a constraint of the table
// refuses it later. The bound holds unless the server's clock is set back by more than that meanwhile, and as long as a
// partition has fewer inserts in that time than there are tokens (10,000). To copy rows into the table, leave out the
// column insert_before.
//
// # Clusters
//
// With Config.Cluster the rows are in a ReplicatedMergeTree on each node, and the table of all of them is Distributed.
// The servers' configuration has the cluster, with internal_replication, and the macros shard and replica.
//
// A Kafka partition belongs to a shard, rather than a link: a batch that were split by its links among shards could be
// there in parts. A link's clicks are therefore on all shards, whose projections are added up. Shards are added while
// no worker runs, since tokens are a shard's own.
//
//   - distributed_foreground_insert: an insert is answered when the shard has it, not when a queue does.
//   - insert_quorum = auto: an insert is answered when most of a shard's replicas have it, so none that was answered is
//     lost with one of them. Quorums are parallel, as they are by default: else workers of several partitions would
//     keep each other from inserting.
//   - load_balancing = in_order: workers write to and read from the same replica of a shard while it is up.
//   - select_sequential_consistency is of no use with parallel quorums. A replica that is behind may therefore answer an
//     old position; a batch that begins there has a token which Keeper knows, so it is refused, and the worker asks
//     again. Counts that are read may be behind by as much as a replica is.
//   - enable_shared_storage_snapshot_in_query holds on one server. On a cluster, a LinkReport reads its days and its
//     referrers by one query of each shard each, so while clicks come in they may differ by a batch.
package clickhouse
