// Package snapshot keeps a log of what an edge has cached, so that the edge has it again after a restart, however the process
// ended. It knows neither links nor hosts: package resolve says what a record means.
//
// # File
//
// A header is followed by blocks. Integers are little-endian; varints are those of encoding/binary.
//
//	header   "linksnap", version (4 bytes), CRC-32C of these 12 bytes
//	block    CRC-32C of the length and the records (4 bytes), length of the records (4 bytes, at most 64 KiB), records
//	record   kind (1 byte), length of the body (uvarint), body
//
// The body of an entry, a record whose kind has the bit Entry, begins with its number (uvarint). Numbers rise from record to
// record of a file, and an entry keeps its number in every file.
//
// # Prefixes
//
// A file is read up to the first block that fails its check. What it says is true for every prefix of it, because a record is
// never changed: later records say what has become of the earlier ones. So neither kill -9, which may cut the last block
// short, nor a power failure, after which any block may be missing, makes a file say what is wrong. At worst it says less.
//
// # Writing
//
// Append copies a record to memory, and never waits for the disk. One goroutine writes what was appended, every flushInterval.
// When the file has grown to twice its initial size, the goroutine writes a new one, which has the
// entries that are still cached, and replaces the old one. So a record is written about twice, and a file is at
// most twice as long as what is cached, plus slack. At most bytesPerSecond are copied to a new file, so that redirects do not
// wait for the disk or the processor.
//
// If the disk does not take a block, the file stays as it is, which is a prefix. What is appended later is not kept: a file
// without a gap can only be had by making a new one, which is tried every retryInterval.
package snapshot
