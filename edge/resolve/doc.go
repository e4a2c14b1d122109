// Package resolve finds the link that a host and a hash stand for, in memory if it can.
//
// # Look-up
//
// A request looks once for the domain of its host, unless that is the default domain, and once for the link:
//
//	                                                     one per key   up to 256 keys
//	host, hash ──▶ ristretto ──▶ negative ──▶ quota ──▶ flight ──────▶ query ──▶ link store
//	                   ▲             ▲                                              │
//	                   └─ new entry ─┴──────── the key does not exist ◀─────────────┘
//
// There are five parts, and the snapshot, which keeps entries over restarts:
//
//   - Ristretto decides which entries are worth keeping (store.go).
//   - The negative table has the keys that did not exist a moment ago (times.go). Its size is fixed, and its keys replace each other.
//   - The quota refuses look-ups of a client that has asked for too many keys that do not exist, or for too many pages about links
//     (quota.go).
//   - A flight is a look-up under way, which all requests for its key share (cache.go).
//   - A query looks up many links: the look-ups that begin during a query share the next one (batch.go). Hosts are looked up one by one
//     (hostquery.go). A host's entry has the URLs for visitors whom no link of the domain leads anywhere (site.go).
//
// TryResolve does all of this without waiting: if a look-up is needed, it begins the look-up, and the caller asks again when its Waiter has
// been told of the end. So neither a look-up nor a refusal needs a goroutine. Resolve is TryResolve with a wait.
//
// # States of an entry
//
//	            found              CacheTTL passes
//	missing ──────────────▶ fresh ─────────────────▶ stale
//	   │                      │                      │   ▲
//	   │                 Drop │                 Drop │   │ the look-up fails
//	   │ not found            ▼                      ▼   │
//	   │                      └─────────▶ dropped ───────┘
//	   └──────▶ negative ──▶ missing, when its time passes or on Drop
//
// A look-up that succeeds replaces an entry in any state by a new one, fresh or negative. A request finds an entry
//
//   - missing: it waits for a look-up, and fails with CodeUnavailable if the look-up fails. It fails with ErrTooMany instead if its
//     client is over its quota.
//   - fresh: it is answered. In the last quarter of CacheTTL, one request also begins a look-up, and nobody waits for it.
//   - stale: it is answered, except for one request, which looks the key up and is answered with the stale entry if the look-up
//     fails. The next attempt follows one LookupTimeout and one second later at the earliest.
//   - dropped: it waits for a look-up, and is answered with the dropped entry if the look-up fails.
//   - negative: it fails with CodeNotFound.
//
// # Changes of many entries
//
// A suspended account, missed changes and a new blocklist concern entries whose keys are not known. Such changes are rare: they visit all
// entries and all flights (cache.dropEach, cache.judgeAll). A link that leads to a blocked host is marked when it is published or when the
// list changes, so that requests for other links do not consult the list.
//
// # Snapshot
//
// With Config.Snapshot, entries outlive the process, in a log of what was published and dropped. The log has records in the order in which
// the changes took effect, and between them positions in the topic of changes. So every prefix of it says: these were the entries when the
// changes before the last position had been taken into account, and perhaps some of those after it. Changes that are dropped twice do no
// harm.
//
// New puts the entries of the log into ristretto. A restored entry is dropped until Reached says that every change since the log's position
// has been dropped; if none of these changes concerns it, the entry is fresh from then on, for half of CacheTTL to all of it.
//
// # Answers
//
// An entry holds the whole answer (answer.go): the location, when the link expires and where it leads then, whether it forwards
// queries, its extension (extension.go), or why it leads nowhere. So expiry is exact to the second and needs no look-up. Preview and
// AppLinks read cached links from the store, too: titles, dates and documents are not worth the memory of every entry.
//
// # Invariants
//
//  1. While the store answers, a request that begins after Drop, Missed or BlocklistChanged has returned sees what the store, or the list,
//     had at that time or later. In particular it never shares a look-up that began before.
//  2. While the store answers, a change that nobody announces shows after CacheTTL, and a link that is created after a sixtieth of it. For
//     restored entries CacheTTL begins when they become fresh.
//  3. While the store fails, every link in the cache is served, however old. Negative entries are never served stale, for
//     a link may have been created meanwhile.
//  4. One look-up per key is under way, and another one only after a Drop. The number of queries is bounded. A client that asks for keys
//     that do not exist delays no look-up of another client, and its keys neither evict entries nor change what ristretto knows of them.
//  5. A cached link costs no allocation and waits for nothing, least of all for the snapshot's disk.
//  6. Ristretto may forget any entry at any time. That costs a look-up, and an answer only while the store fails. Entries take about
//     CacheBytes; the negative table, the quotas and ristretto's buffers take a few MB more.
package resolve
