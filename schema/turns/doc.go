// Package turns bounds what one client may take of something that all clients share.
//
//   - Turns: work that is under way. Clients that wait take turns, by the prices of their calls.
//   - Bucket: how often each client may do something (a token bucket).
//   - Bound: how much clients hold at the same time, such as bytes, connections or exports.
//
// A Client is an account or a network: signed-in work is counted by account, anonymous work by network. Everything is
// counted in this process alone. All methods may be called concurrently.
package turns
