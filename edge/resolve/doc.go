// Package resolve finds the link of a host and a hash, in memory if it can.
//
// # Look-up
//
// A request looks once for the domain of its host, unless that is the default domain, and once for the link. A path may
// stand for several names: the look-up asks for all of them at once (question.go). If it finds none, the path in lower
// case is looked up, too.
//
//	                                                    one per question   up to 256 keys
//	host, path ──▶ ristretto ──▶ answers ──▶ quota ──▶ flight ──────────▶ query ──▶ link store
//	                   ▲            ▲                                                  │
//	                   └─ new entry ┴──── which name was found, or none ◀──────────────┘
//
// There are six parts, and the snapshot, which keeps entries over restarts:
//
//   - Ristretto decides which entries are worth keeping (store.go). An entry is a link, under one of its names.
//   - The answers say which of the names of a question was found a moment ago, or that none was, in which case the
//     entry of the question is negative (times.go). Their table has a fixed size, and they replace each other.
//   - The changes are counts. An answer is forgotten when a link changes that has one of its names, whether or not the
//     link existed (changes.go).
//   - The quota refuses look-ups of a client that has asked for too many names that do not exist, or for too many pages
//     about links (quota.go).
//   - A flight is a look-up under way, which all requests with its question share (cache.go).
//   - A query looks up many links: the look-ups that begin during a query share the next one (batch.go). Hosts are
//     looked up one by one (hostquery.go). The entry of a host has the URLs to which the domain sends visitors without
//     a link, and what becomes of paths behind names (site.go, path.go).
//
// An entry says whether names lie beneath its own: begin with it and a slash. If none does, the entry answers every
// path behind its name from memory, and it is dropped when a name beneath changes. Otherwise each path is a question,
// and one of the names that do not exist.
//
// TryResolve does all of this without waiting: if a look-up is needed, it begins the look-up, and the caller asks
// again when its Waiter is called at the end. So neither a look-up nor a refusal needs a goroutine. Resolve is
// TryResolve with a wait.
//
// # States of an entry
//
//	            found              CacheTTL passes
//	missing ──────────────▶ fresh ─────────────────▶ stale
//	   │                      │                      │
//	   │                 Drop │                 Drop │
//	   │ not found            ▼                      ▼   a look-up fails
//	   │                      └─────────────────▶ dropped ──────────────▶ failed ──▶ dropped, on Drop
//	   └──────▶ negative ──▶ missing, when its time passes or on Drop
//
// A look-up that succeeds replaces an entry in any state by a new one, fresh or negative. A request finds an entry
//
//   - missing: it waits for a look-up, and fails with CodeUnavailable if the look-up fails. It fails with ErrTooMany
//     instead if its client is over its quota.
//   - fresh: it is answered. In the last quarter of CacheTTL, one request also begins a look-up, and does not wait.
//   - stale: it is answered, and one request also begins a look-up, as in the last quarter. So a link store that hangs
//     delays no visitor. The next attempt follows one LookupTimeout and one second later at the earliest.
//   - dropped: it waits for a look-up, and is answered with the dropped entry if the look-up fails.
//   - failed: it is answered with the dropped entry, except for one request per LookupTimeout and second, which waits
//     for a look-up: as soon as the store answers, the change shows.
//   - negative: it fails with CodeNotFound.
//
// # Changes of many entries
//
// A suspended account, missed changes and a new blocklist concern entries whose keys are unknown. Such changes are
// rare: they visit all entries and all flights (cache.dropEach, cache.judgeAll). A link that leads to a blocked host
// is marked when it is published or when the list changes, so that requests for other links do not consult the list.
//
// # Snapshot
//
// With Config.Snapshot, entries outlive the process (snapshot.go, package snapshot). A dump has the positions up to
// which changes were dropped, then the entries that were never dropped. The list beside it has the keys of later
// changes.
//
// New restores the entries of the dump that the list does not name. A restored entry counts as dropped until Reached
// says that every change since the dump's position has been dropped. If none of these changes concerns it, it is fresh
// from then on, for half of CacheTTL to all of it. So a restored entry is never older than the last change before the
// kill that the list had, whichever engines are away; and with both engines, it is never older than any change.
//
// # Answers
//
// An entry holds the whole answer (answer.go): the location, when the link expires and its location then, whether it
// forwards queries, its behaviour (behaviour.go), or why it has no location. So expiry is exact to the second and
// needs no look-up. Preview and AppLinks read cached links from the store, too: titles, dates and documents are not
// worth the memory of every entry.
//
// # Invariants
//
//  1. While the store answers, a request that begins after Drop, Missed or BlocklistChanged has returned is answered
//     from the store, or the list, as it was at that time or later. So it never shares a look-up that began before.
//  2. While the store answers, a change that is not announced shows to the second visitor after CacheTTL, and a link
//     that is created after a sixtieth of it, or after all of it if a name in front allowed its path. For restored
//     entries CacheTTL begins when they become fresh.
//  3. While the store fails, every link in the cache is served, however old. Negative entries are never served stale:
//     the link may exist by then.
//  4. One look-up per question is under way, and another one only after a change. The number of queries is bounded. A
//     client that asks for keys that do not exist delays no look-up of another client, and its keys neither evict
//     entries nor change ristretto's counts.
//  5. A cached link costs no allocation and waits for nothing, least of all for the snapshot's disk.
//  6. Ristretto may remove any entry at any time. That costs a look-up, and an answer only while the store fails.
//     Entries take about CacheBytes; the tables of answers and changes, the quotas and ristretto's buffers take a few
//     MB more.
package resolve
