// Package resolve finds the link that a host and a hash stand for, in memory if it can.
//
// # Look-up
//
// A request looks in three places, the cheapest first, once for the host's domain (unless it is the default domain) and
// once for the link:
//
//	                    hit                      hit                        at most 64 look-ups, one per key
//	host, hash ──▶ hot table ──miss──▶ shards (ristretto) ──miss──▶ flight ──▶ limiter ──▶ link store
//	                   ▲                   │     ▲                                             │
//	                   └── remember for 4 s┘     └─────────────── new entry ◀──────────────────┘
//
// The hot table (hottable.go) answers what was asked for a moment ago with one atomic read. The shards (shards.go) decide
// what is worth keeping. A flight (cache.go) is a look-up under way, which all requests for its key share. The limiter
// (limiter.go) bounds the number and the duration of look-ups.
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
//   - missing: it waits for a look-up, and fails with CodeUnavailable if that fails.
//   - fresh: it is answered.
//   - stale: it is answered, except for one request, which looks the key up and is answered with the stale entry if that
//     fails. The next attempt follows one LookupTimeout and one second later at the earliest.
//   - dropped: it waits for a look-up, and is answered with the dropped entry if that fails.
//   - negative: it fails with CodeNotFound.
//
// # Invariants
//
//  1. While the store answers, a request that begins after Drop has returned sees what the store had at that time or
//     later. In particular it never shares a look-up that began before the Drop.
//  2. While the store answers, a change that nobody announces by Drop shows after CacheTTL, and a link that is created
//     after NegativeTTL.
//  3. While the store fails, every link in the cache is served, however old. Negative entries are never served stale, for
//     a link may have been created meanwhile.
//  4. One look-up per key is under way, and a second one only after a Drop. At most 64 are under way altogether.
//  5. A cached link costs no allocation and waits for nothing.
//  6. Any entry may be forgotten at any time, or never be kept. That costs a look-up, and an answer only while the store
//     fails.
//  7. Entries and ristretto's counters take about CacheBytes when the cache is full, within a few percent. The hot table
//     adds 8 bytes per KiB, ristretto's buffers add about 2 MB.
package resolve
