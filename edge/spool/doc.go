// Package spool stores clicks on the edge's disk from the moment a redirect is answered until the broker has
// acknowledged them, or, on a machine without a broker, until they are counted on the disk.
//
// # Use
//
// Handlers call [Spool.Append]. It copies the click into a memory-mapped file under a lane's lock, without a system
// call and without an allocation. A click that has been appended survives kill -9: the kernel owns the page cache and
// writes it back after the process has died. [Config.Sync] bounds what a power failure may lose.
//
// A [Shipper] sends the clicks to the broker. Only the goroutine that ships a lane reads and acknowledges it:
//
//	handler ─┐                                    ┌─▶ lane 0 ─ Read ─▶ batch ─ Produce ─▶ partition
//	handler ─┼─ Append(hint, click) ─▶ lane[hint] ┤                      ▲                   │
//	handler ─┘                                    └─▶ lane 1 …           └─── Acknowledge ◀──┘
//
// # Identity
//
// While few clicks come, all go to the first lane: each lane with clicks costs its partition an insert into the click
// store, however few they are. The shipper sees from its batches how many come.
//
// Every process start draws a random incarnation. A click is identified by (incarnation, lane, seq); seq counts 1, 2,
// 3, … in the lane. A process appends only to segments of its own incarnation. It ships what earlier processes have
// left under the identity that it was recorded with, so that a consumer recognizes repetitions by the lane's highest
// seq.
//
// # Files
//
//	DIR/lock                                  flock(2): one process at a time has the spool open
//	DIR/<incarnation>/<lane>-<number>.segment
//	DIR/<incarnation>/<lane>.refused          clicks that the broker refused for good, see [UnshippableFiles]
//	DIR/ended                                 the last seq of lanes without segments, for [Inspect]
//	DIR/limited                               clicks in removed segments that count towards limits,
//	                                          and incarnations with leases
//	DIR/dropped                               number of clicks that found no room
//
// A segment is a file of fixed size: a header and then records. Numbers are little endian, checksums CRC-32C.
//
//	offset 0       8             24     28            32          40                 48    52      64
//	       ┌───────┬─────────────┬──────┬─────────────┬───────────┬──────────────────┬─────┬───────┐
//	header │ magic │ incarnation │ lane │ partition+1 │ first seq │ acknowledged seq │ crc │ zeros │
//	       └───────┴─────────────┴──────┴─────────────┴───────────┴──────────────────┴─────┴───────┘
//	       ┌─────────────────┬─────┬──────┬──────────────────────────┐
//	record │ index, length+1 │ crc │ body │ zeros to a multiple of 8 │   the body is a click without its identity
//	       └─────────────────┴─────┴──────┴──────────────────────────┘
//	       0                 4     8
//
// The checksum of the header covers incarnation, lane and first seq, which never change. Partition and acknowledged seq
// change while the segment is in use, each by one atomic write.
//
// The first word of a record has the length in its low 12 bits and the record's index in the segment above them: its
// seq is the first seq plus the index. The checksum of a record begins with the header's checksum plus the index, so a
// record is valid only in its segment and under its number. Without the incarnation, nobody can forge a record.
//
// A record exists once its first word is not zero. The word is stored last, by one atomic write. So a process that is
// killed at any instant leaves whole records, followed by at most one unfinished one and zeros. After a power failure
// pages may be missing, and a disk may return other bytes than were written. A record whose check fails is skipped: the
// next one is the first place behind it whose check succeeds under a higher index. Clicks keep their numbers, so
// consumers see the gap. The segment is renamed to *.damaged when its other clicks are acknowledged, unless the spool
// is more than half full.
//
// # Life of a segment
//
//	       the lane needs room        its successor is active
//	spare ────────────────────▶ active ─────────────────────▶ sealed
//	  │                           │                            │  │
//	  │ Close, or                 │ process ends  process ends │  │ all its clicks
//	  │ next process              ▼                            │  │ are acknowledged
//	  │                       recovered ◀──────────────────────┘  │
//	  │                        │     │                            │
//	  │        the lane is     │     │ a check fails              │
//	  │        shipped to its  │     │                            │
//	  ▼        end             ▼     ▼                            ▼
//	removed                removed  renamed to *.damaged       removed
//
// Spares are created ahead of time; they have no header. Only an active segment gets records; in sealed and recovered
// ones only the acknowledged seq and the partition change. Close also removes the segments of a lane that has no
// pending clicks.
//
// # Limits
//
// The spool is bounded by [Config.MaxBytes]. When it or the disk is full, Append drops clicks and counts them, and
// redirects go on. All blocks of a segment are allocated before it is mapped. Where a file system needs other blocks
// nevertheless, and has none, the kernel answers an append with SIGBUS. The append then goes to another segment: to the
// spool it means no more than that a segment is full.
package spool
