// Package snapshot keeps on disk what an edge has cached, so that the edge has it again after a restart, however the
// process ended. It interprets neither records nor keys: package resolve does.
//
// # Files
//
// A snapshot is a dump of all entries, and a list of the keys that were dropped since the dump was begun. It stands
// for the entries of the dump that the list does not name. Integers are little-endian.
//
//	dump     "linksnp2", generation (8 bytes, random), records, end
//	record   length of the body (3 bytes), kind (1 byte, not 0), body
//	end      4 (3 bytes), 0 (1 byte), CRC-32C of all bytes before it
//
//	list     keys, the first of which is the generation (16 hexadecimal digits)
//	key      CRC-32C of the bytes that follow, length (2 bytes), key
//
// The list of the dump at a path is at the path, a dot, and the generation. A dump that fails its check is ignored,
// and so is one whose list is missing or fails a check: without its list a dump would bring back links that were taken
// down.
//
// # Writing
//
// A dump takes four steps, after each of which a crash leaves a dump with its list:
//
//  1. A new list is created. Keys are appended to both lists from here on.
//  2. The dump is written to path.new, which is synced. A key that is dropped after its entry was written is in the new
//     list. A key that was dropped before step 1 has no older entry in the dump.
//  3. path.new is renamed to path. Until here the old dump and its list are valid, from here on the new ones.
//  4. The old list is removed.
//
// Appended keys survive kill -9, because the page cache belongs to the kernel; a power failure may take the last ones.
// If a key cannot be appended, the dump is removed: the next one has what is cached by then.
//
// # Bounds
//
// A dump has no more bytes than its entries have in memory. There are two while one is written, at up to
// bytesPerSecond, so that redirects wait neither for the disk nor for a CPU. A list of listBytes begins the next dump
// early, and one of maxListBytes removes the dump.
package snapshot
