// Package simulation tests the promise that every click is counted exactly once. It has tests alone.
//
// Real spools, shippers and workers run against a model of the broker and of the click store. Everything that would
// wait for the network is a task that a scheduler resumes at random, one at a time; the models fail at random, and
// processes are killed at random. All that is random follows from a seed, so a seed that fails does so again.
package simulation
