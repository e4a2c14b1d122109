// Package eventloop serves HTTP to visitors, most of whom open a connection, follow one link and leave. What can be
// answered from memory is answered by a few event loops; everything else goes to goroutines and fasthttp's server.
//
// # Why
//
// Package net gives each connection a goroutine, an entry in Go's poller and seven socket options, and each wait is
// a switch of goroutines. A redirect from memory takes about a microsecond; what stands around it takes forty on a
// new connection and ten on a lasting one. A loop makes just the system calls that cannot be avoided, in a row:
// accept, receive, send and close for a new connection, receive and send for a further request, and one wait for
// many of them. .github/decisions/0001-event-loops.md has the measurements, and what was tried and not kept.
//
// # The states of a connection
//
//	                 accept                     whole GET or HEAD,
//	in the kernel's ────────▶ fresh            answer is in memory
//	queue           │         (no byte yet)       ┌────────┐
//	                │ bytes    │ bytes             ▼        │ bytes
//	                ▼          ▼         answer  ┌────────────┐  idle too long, or
//	               on the loop: parse, ─────────▶│    idle    │─ longest, and full ──▶ closed
//	               TryServe, send      ◀─────────│ (no memory │
//	                │        │            bytes  │  but conn) │
//	    last answer │        │                   └────────────┘
//	                │        │ Await                    ▲
//	                │        ├──────────▶ parked ───────┘ Done: TryServe again, send
//	                ▼        ▼ anything else
//	              closed   with a goroutine, until it is closed: fasthttp.Server.ServeConn
//
// A connection is in exactly one of these states. Until a goroutine gets it, it belongs to one loop
// (conn_linux.go). A loop is one goroutine; nothing but its inbox is shared (inbox_linux.go).
//
// # What the loop answers
//
// The loop has fasthttp parse what it has read, by Request.Header.Read, and offers the request to Handler.TryServe
// if it is a GET or HEAD without a body (serve_linux.go). TryServe promises not to block; it declines what it
// cannot answer from memory. There is no second HTTP implementation: half a request, a body, chunks, Expect,
// Upgrade, errors of syntax, long pipelines, a client that does not take its answer, all of these go to a goroutine
// with the bytes already read (handed_linux.go), and fasthttp's server sees the connection as if the loop had never
// been there. The same tests run against both ways. Headers above Config.MaxHeaderBytes are read by a bounded number of
// goroutines at a time (large.go).
//
// A goroutine keeps the connection for some further requests, and then an answer of it ends the connection
// (Server.serveHTTP), so that a proxy's connections come back to the loops. At most 1024 connections of loops have
// an idle goroutine.
//
// A request that only waits for an event, such as the end of a look-up in the store, needs no goroutine: TryServe
// has the event call a waiter's Done (Request.Await), and the connection is parked with the bytes already read
// until then (wait_linux.go). Any number of waiters that are done at the same time wake the loop once.
//
// # Bounds
//
// Connections of loops idle in lists in order of time (time_linux.go), so that timeouts cost nothing until they
// pass; goroutines' connections that wait for a request are in one list (bounded.go). When Config.MaxConnections
// are open, the connection that has been idle for longest makes room, whichever way it is served. One address may
// have Config.MaxConnectionsPerAddress. When the system is out of descriptors or memory, idle connections are
// closed, and the loop waits a moment and goes on (accept_linux.go).
//
// # CPUs
//
// There is one loop per two CPUs, since two half-busy loops cost more than one busy loop. All of them accept: the
// kernel skips loops that are busy (EPOLLEXCLUSIVE), so a loop that is stuck, in a page fault of a slow disk for
// example, delays its own connections but no new ones. A busy loop waits outside Go's scheduler, and keeps its
// place to run; an idle one waits like any other goroutine and costs nothing (loop.wait). Config.ReserveCPUs gives
// the scheduler as many places more.
//
// When the server stops, it waits for a stuck loop no longer than for requests under way, and returns ErrStuck
// (server_linux.go).
//
// # HTTPS
//
// A handshake takes a hundred times as long as a redirect, so loops would win nothing: Server.ServeTLS has
// goroutines serve HTTPS, with the same handler, timeouts and bounds (secure.go). Handshakes have bounds of their
// own, and compute in turns on some of the CPUs (handshake.go), so that a flood of them leaves the others to the
// loops. Timers are set when deadlines come closer, not with each request (deadline.go).
//
// # Other systems
//
// Without Linux, with Config.Loops 0 or Config.ProxyProtocol (proxied.go) and for listeners that are not the
// kernel's, fasthttp serves the same Handler on package net, with the same bounds (bounded.go).
package eventloop
