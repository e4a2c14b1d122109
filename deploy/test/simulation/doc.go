// Package simulation tests that every click is counted exactly once under faults. It has only tests.
//
// Real spools, shippers and workers run against models of the broker and of the click store:
//
//	spool ──▶ shipper ──▶ producer ──▶ broker (model) ──▶ engineView ──▶ worker ──▶ engineView ──▶ store (model)
//	                         │            ▲                    │                         │
//	                         ▼            │                    ▼                         ▼
//	                      faults: lost, repeated and       faults: failed and        faults: failed inserts,
//	                      delayed batches                  broken fetches            lost answers
//
// Whatever would wait for the network is a task. A scheduler resumes one task at a time, at random, and kills and
// suspends processes at random. All randomness follows from a seed, so a seed that fails once fails again; with -v it
// prints its events.
//
// Disasters happen in every other seed: a log loses its end, its beginning or everything, the topic loses a partition,
// the store is set back, the edge loses power. The clicks of which a disaster destroys the last copy may be missing in
// the end, no others. The disk of the edge is a model, too: of each page, a power failure leaves what was synced or
// what was written last.
//
// Time passes by one second per event. The edge's clock may be wrong. The store fences inserts in one step, as SQLite
// does, or by tokens that it soon forgets and a time limit, as ClickHouse does.
//
// Leases of links' limits have a simulation of their own: real spools and leases against a model of the link store, in
// a bubble of time.
//
// make test runs 60 seeds and every broken protocol, make nightly 3,000 seeds. The scheduler runs one task at a time,
// so the race detector would find nothing in three times the time: with it the package has no tests.
package simulation
