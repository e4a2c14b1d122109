// Package fair bounds what one client may take of something that all clients share. A client is whatever the caller counts by: a
// Network, an account, a credential.
//
//   - Turns: how many work at the same time. Clients that wait take turns, however many calls each of them has.
//   - Count: how many connections each network has open.
//   - Pace: how often each client may do something.
//
// All of it is counted in this process alone, and all methods may be called concurrently.
package fair
