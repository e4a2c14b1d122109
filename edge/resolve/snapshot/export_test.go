package snapshot

import (
	"encoding/binary"
	"hash/crc32"
	"os"
)

// Constants and functions for tests.
const (
	DumpInterval = dumpInterval
	ListBytes    = listBytes
	MaxListBytes = maxListBytes
	MaxBody      = maxBody
)

var (
	ReadDump = readDump
	ReadList = readList
)

// EncodeDump returns a dump of records, each of which begins with its kind.
func EncodeDump(generation uint64, records ...[]byte) []byte {
	dump := appendHeader(nil, generation)
	for _, record := range records {
		dump = appendRecord(dump, record[0], record[1:])
	}
	dump = binary.LittleEndian.AppendUint32(dump, endKind<<24|sumLen)
	return binary.LittleEndian.AppendUint32(dump, crc32.Checksum(dump, castagnoli))
}

// EncodeList returns a list of keys.
func EncodeList(keys ...string) (list []byte) {
	for _, key := range keys {
		list = appendKey(list, key)
	}
	return list
}

// Kill ends the goroutines, as the end of the process would, without a last dump.
func (s *Snapshot) Kill() {
	s.once.Do(func() {
		close(s.stop)
		s.done.Wait()
		if s.list != nil {
			_ = s.list.Close()
		}
	})
}

// SetList makes the file at a path the list.
func SetList(s *Snapshot, path string) (err error) {
	_ = s.list.Close()
	s.list = new(list)
	s.list.File, err = os.OpenFile(path, os.O_WRONLY, 0)
	return err
}
