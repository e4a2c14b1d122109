package snapshot

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// Constants for tests.
const (
	FlushInterval = flushInterval
	RetryInterval = retryInterval
	MaxBlock      = maxBlock
	Slack         = slack
)

// WithVersion returns a file with another version in its header.
func WithVersion(content []byte, version uint32) []byte {
	content = slices.Clone(content)
	binary.LittleEndian.PutUint32(content[len(magic):], version)
	binary.LittleEndian.PutUint32(content[headerLen-4:], crc32.Checksum(content[:headerLen-4], castagnoli))
	return content
}
