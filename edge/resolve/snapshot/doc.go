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
// A file is read up to the first block that fails its check. Every prefix of a file is correct, because records are never changed:
// later records revoke earlier ones. So a file stays correct after kill -9, which may cut the last block short, and after a power
// failure, which may lose any block. At worst it has fewer entries.
//
// # Writing
//
// Append copies a record to memory, and never waits for the disk. One goroutine writes appended records every flushInterval. When the
// file has grown to twice its initial size, the goroutine replaces it by a new file of the entries that are still cached. So a record
// is written about twice, and a file is at most twice as long as the cached entries, plus slack. At most bytesPerSecond are copied to
// a new file, so that redirects do not wait for disk or CPU.
//
// If writing a block fails, the file stays as it is, a correct prefix. Later records are discarded until a new file is written, which
// is tried every retryInterval: the old one would have a gap.
package snapshot
