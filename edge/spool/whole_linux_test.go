package spool_test

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"linkstream/schema/testkit"
)

// TestRecordsAppearWhole looks at a segment while clicks are appended, as a kill at any moment would leave it: a record
// that has a length has its body and its checksum.
func TestRecordsAppearWhole(t *testing.T) {
	const header, size = 64, 8 << 20
	cfg := config(t.TempDir(), 1)
	cfg.SegmentBytes, cfg.MaxBytes = size, 4*size
	s, _ := open(t, cfg)
	appendClicks(t, s, 0, 1, 1)
	file, err := os.Open(onlySegment(t, cfg.Dir))
	testkit.Must(t, err)
	defer testkit.Close(t, file)
	data, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	testkit.Must(t, err)
	defer func() { testkit.Must(t, unix.Munmap(data)) }()
	const clicks = 100_000
	var appended atomic.Bool
	go func() {
		defer appended.Store(true)
		for link := range int64(clicks) {
			s.Append(0, click(link))
		}
	}()
	table := crc32.MakeTable(crc32.Castagnoli)
	seed, seen := binary.LittleEndian.Uint32(data[48:]), 0
	for pos := header; ; {
		ended := appended.Load()
		n := int((*atomic.Uint32)(unsafe.Pointer(&data[pos])).Load() & 0xfff)
		switch {
		case n > 0:
			body := data[pos+8 : pos+7+n]
			if sum := binary.LittleEndian.Uint32(data[pos+4:]); sum != crc32.Update(seed+uint32(seen), table, body) {
				t.Fatalf("record %d has a length and not yet the rest", seen)
			}
			seen++
			pos += 8 + (n+6)&^7
		case ended:
			testkit.Equal(t, "records", seen, clicks+1)
			return
		}
	}
}
