// Package resolve finds the link that a host and a hash stand for, in memory if it can.
//
// # Look-up
//
// A request looks in four places, the cheapest first, once for the host's domain (unless it is the default domain) and
// once for the link:
//
//	                                                                          one per key   up to 256 keys
//	host, hash ──▶ hot table ──▶ shards (ristretto) ──▶ negative ──▶ quota ──▶ flight ──▶ query ──▶ link store
//	                   ▲                 │   ▲             ▲                                            │
//	                   └ remember for 4 s┘   └─ new entry ─┴──────────── the key does not exist ◀───────┘
//
// The hot table (hottable.go) answers what was asked for a moment ago with one atomic read. The shards (shards.go) decide
// what is worth keeping. The table of negative entries (times.go) has the keys that did not exist a moment ago. A flight
// (cache.go) is a look-up under way, which all requests for its key share. Links are looked up by few queries at a time: a
// look-up that finds one under way shares the next one with all others that wait (batch.go). A look-up of a link costs neither
// a goroutine nor a timer: Lookups (lookup.go) begins it for a request on an event loop, whose Waiter is told of its end, and all
// look-ups of a query end together. The limiter (limiter.go) bounds the duration of look-ups of hosts, and reports those that fail.
//
// # Keys that do not exist
//
// Anybody can ask for random hashes and hosts, each of which is a miss. Four things keep this from others:
//
//   - Negative entries have a table of a fixed size of their own, in which they replace each other. Ristretto keeps only
//     what exists, and does not hear of other keys, which would take the place of the counts of popular ones.
//   - The quota (quota.go) refuses look-ups for a client that has had too many keys looked up that do not exist. Links that
//     exist do not count, cached or not, and links that are cached are always answered, stale or dropped ones as well.
//   - Neither a refusal nor a look-up needs a goroutine: Cached.Wait tells an event loop of the one, Lookups begins the other.
//   - Until its share is restored, the look-ups of such a client wait for queries of their own.
//
// # Renewal
//
// A link that has visitors is looked up again before it expires, after half to seven eighths of CacheTTL, as its hash says
// (memory.renewAt). So links that were looked up at the same time, when an edge starts or gets busy, are not looked up at the same time
// again. Renewals wait for 50 ms to share queries, which no other look-up waits for. The request that begins one is answered from
// memory.
//
// # States of an entry
//
//	            found              CacheTTL passes
//	missing ──────────────▶ fresh ─────────────────▶ stale
//	   │                      │                      │   ▲
//	   │                 Drop │                 Drop │   │ the look-up fails
//	   │ not found            ▼                      ▼   │
//	   │                      └─────────▶ dropped ───────┘
//	   └──────▶ negative ──▶ missing, when NegativeTTL passes or on Drop
//
// A look-up that succeeds replaces an entry in any state by a new one, fresh or negative. A request finds an entry
//
//   - missing: it waits for a look-up, and fails with CodeUnavailable if that fails. It fails with ErrTooMany instead if its
//     client is over its quota.
//   - fresh: it is answered. If it is time, the entry is renewed.
//   - stale: it is answered, except for one request, which looks the key up and is answered with the stale entry if that
//     fails. The next attempt follows one LookupTimeout and one second later at the earliest.
//   - dropped: it waits for a look-up, and is answered with the dropped entry if that fails.
//   - negative: it fails with CodeNotFound.
//
// # Snapshot
//
// With Config.Snapshot, entries outlive the process, in a log of what was published and dropped (snapshot.go, package snapshot).
// New reads it into the backlog (backlog.go), where requests find what the shards do not have. Settle moves entries from there to the
// shards in the background, which takes longer than to read them. An entry that a look-up has replaced meanwhile is retired: it is not
// found any more, wherever it is.
//
// An entry that was restored is unproven. A request finds it
//
//   - as if it was dropped, until Reached says that every change since the log's position has been dropped;
//   - from then on fresh, for CacheTTL or half of it from that time, unless one of these changes has dropped it.
//
// The log has what was published, dropped and recalled, in the order in which it took effect, and between them positions in
// the log of changes. So every prefix of it says: these were the entries when the changes before the last position had been
// taken into account, and perhaps some of those after it. Changes that are dropped twice do no harm.
//
// # Review
//
// A change of the blocklist, or of all links of an account, concerns any number of entries whose keys nobody knows. It
// begins a round (review.go). An entry carries the round in which it has passed, so that a request compares two words. The
// first request for an entry in a new round judges it in memory: it is dropped if it was looked up before its account
// changed, and not followed while its host is on the blocklist, whether or not the store answers.
//
// # Answers
//
// An entry holds the whole answer (answer.go): the location, when the link expires and where it leads then, whether it forwards
// queries, or why it leads nowhere. So expiry is exact to the second and needs no look-up. Preview alone reads a link from the
// store although it is cached: titles and dates are not worth the memory of every entry.
//
// # Invariants
//
//  1. While the store answers, a request that begins after Drop has returned sees what the store had at that time or
//     later. In particular it never shares a look-up that began before the Drop.
//  2. While the store answers, a change that nobody announces by Drop shows after CacheTTL, and a link that is created
//     after NegativeTTL. CacheTTL counts from the start of the process if that was later than the change.
//  3. While the store fails, every link in the cache is served, however old. Negative entries are never served stale, for
//     a link may have been created meanwhile.
//  4. One look-up per key is under way, and a second one only after a Drop. At most 6 queries for links, one for pages about
//     links, and 64 look-ups of hosts, are under way altogether. A query begins after every look-up in it.
//  5. A cached link costs no allocation and waits for nothing.
//  6. Any entry may be forgotten at any time, or never be kept. That costs a look-up, and an answer only while the store
//     fails.
//  7. Entries and ristretto's counters take about CacheBytes when the cache is full, within a few percent. The hot table
//     adds 8 bytes per KiB, negative entries add 16, the quotas add 512 KiB and ristretto's buffers about 2 MB. Until Settle returns,
//     links that were not restored may take as much as those that were, which take 20 to 40 bytes each more.
//  8. A negative entry is stored while cache.mu is held, and only if there was no Drop during its look-up. So no negative
//     entry for a link follows the Drop that announces it.
//  9. Keys that do not exist neither evict entries nor change what is known of their popularity.
//  10. Negative entries are never restored, nor is what a later record of the snapshot drops, replaces, or says to be gone.
//  11. No request waits for the snapshot's disk.
package resolve
