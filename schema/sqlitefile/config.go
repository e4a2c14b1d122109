package sqlitefile

import "net/url"

// Readers is how many connections read; a query takes well under a millisecond.
const Readers = 4

const busyTimeout = "10000" // milliseconds that a write waits for another process

// writerDSN returns the data source name of the connection that writes.
func writerDSN(path string) string {
	return dsn(path, url.Values{
		"_busy_timeout": {busyTimeout}, "_foreign_keys": {"1"}, "_dqs": {"0"}, "_txlock": {"immediate"},
		"_journal_mode": {"WAL"},
		// FULL syncs the write-ahead log at each commit: what was answered or released after it survives a power failure.
		"_synchronous": {"FULL"},
		// A batch of clicks changes pages all over the file: 64 MiB of pages stay in memory, and so do the journals of
		// statements. The write-ahead log is moved into the file when it reaches 32 MiB.
		"_pragma": {"cache_size(-65536)", "temp_store(MEMORY)", "wal_autocheckpoint(8192)"},
	})
}

// readerDSN returns the data source name of the connections that read.
func readerDSN(path string) string {
	return dsn(path, url.Values{"_busy_timeout": {busyTimeout}, "_dqs": {"0"}, "_query_only": {"1"}})
}

// dsn escapes the path: otherwise a question mark in it would begin the options.
func dsn(path string, options url.Values) string {
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: options.Encode()}).String()
}
