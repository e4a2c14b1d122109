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
// Whatever would wait for the network is a task. A scheduler resumes one task at a time, at random, and kills processes at
// random. All randomness follows from a seed, so a seed that fails once fails again.
package simulation
