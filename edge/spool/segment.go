package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"linkstream/schema"
)

// A segment is a file of fixed size, mapped into memory: a header, then records one after another.
//
//	header  magic 8 | incarnation 16 | lane 4 | partition+1 4 | first seq 8 | acknowledged seq 8 | check 4 | 0 12
//	record  length+1 4 | check 4 | body | 0 to 7 zero bytes
//
// Numbers are little endian, checks CRC-32C. A record counts once its length is there: the length is stored last, in
// one atomic write, so that a process killed at any instant leaves whole records followed by zeros. Mapped memory
// belongs to the kernel, which keeps it when the process dies.
const (
	headerLen       = 64
	offIncarnation  = 8
	offLane         = 24
	offPartition    = 28
	offFirstSeq     = 32
	offAcknowledged = 40
	offCheck        = 48

	recordHeaderLen = 8
	maxRecordLen    = recordHeaderLen + (schema.MaxClickBodyLen+7)&^7
)

var (
	magic      = [8]byte{'L', 'S', 'S', 'P', 'O', 'O', 'L', '1'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errUnused  = errors.New("segment was never used")
	errDamaged = errors.New("segment fails the check of its header")
	errCorrupt = errors.New("record fails its check")
)

type segment struct {
	path     string
	data     []byte        // the mapped file; nil after release
	written  atomic.Uint32 // bytes of header and whole records; only of one this process began
	synced   uint32        // of written, how much is on the disk
	sealed   atomic.Bool   // no record will follow
	firstSeq uint64
}

// createSegment allocates and maps a file. Its blocks are reserved in full before it is mapped: a disk that fills up
// later would otherwise show as SIGBUS in the middle of a redirect.
func createSegment(path string, size int) (*segment, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", err)
	}
	defer f.Close()
	data, err := allocateAndMap(f, size)
	if err != nil {
		os.Remove(path)
		return nil, fmt.Errorf("create segment %q: %w", path, err)
	}
	return &segment{path: path, data: data}, nil
}

func allocateAndMap(f *os.File, size int) ([]byte, error) {
	err := allocate(f, size)
	if err == nil {
		err = writeZeros(f, size)
	}
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes: %w", size, err)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	prefault(data)
	return data, nil
}

// begin writes the header. Until then the file is a spare that belongs to no position in the lane.
func (s *segment) begin(lane schema.Lane, partition uint32, firstSeq uint64) {
	copy(s.data[offIncarnation:], lane.Incarnation[:])
	binary.LittleEndian.PutUint32(s.data[offLane:], lane.Number)
	binary.LittleEndian.PutUint64(s.data[offFirstSeq:], firstSeq)
	s.word(offPartition).Store(partition)
	binary.LittleEndian.PutUint32(s.data[offCheck:], s.headerCheck())
	copy(s.data, magic[:])
	s.firstSeq = firstSeq
	s.written.Store(headerLen)
}

// openSegment maps a file that an earlier process left behind; its records may be read, none be added. errUnused if
// that process never began it, errDamaged if its header cannot be trusted.
func openSegment(path string) (s *segment, lane schema.Lane, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, lane, fmt.Errorf("open segment: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, lane, fmt.Errorf("stat segment: %w", err)
	}
	if info.Size() == 0 {
		return nil, lane, errUnused
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, lane, fmt.Errorf("map segment %q: %w", path, err)
	}
	s = &segment{path: path, data: data}
	s.sealed.Store(true)
	if !s.begun() {
		return nil, lane, errors.Join(errUnused, s.unmap())
	}
	if !s.headerHolds() {
		return nil, lane, errors.Join(errDamaged, s.unmap())
	}
	lane.Incarnation = schema.Incarnation(data[offIncarnation:])
	lane.Number = binary.LittleEndian.Uint32(data[offLane:])
	s.firstSeq = binary.LittleEndian.Uint64(data[offFirstSeq:])
	return s, lane, nil
}

// begun reports whether there is anything in the segment. A header without its magic says nothing by itself: a power
// loss may take the first page and leave others.
func (s *segment) begun() bool {
	records := s.data[min(headerLen, len(s.data)):]
	return !bytes.HasPrefix(s.data, make([]byte, len(magic))) || bytes.Count(records, []byte{0}) < len(records)
}

func (s *segment) headerHolds() bool {
	return len(s.data) >= headerLen && [8]byte(s.data) == magic &&
		binary.LittleEndian.Uint32(s.data[offCheck:]) == s.headerCheck()
}

// headerCheck covers what never changes once the segment is begun.
func (s *segment) headerCheck() uint32 {
	check := crc32.Checksum(s.data[offIncarnation:offPartition], castagnoli)
	return crc32.Update(check, castagnoli, s.data[offFirstSeq:offAcknowledged])
}

func (s *segment) word(off int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&s.data[off]))
}

// partition returns the partition its lane is bound to plus one, 0 while it is bound to none.
func (s *segment) partition() uint32 { return s.word(offPartition).Load() }

func (s *segment) acknowledged() *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&s.data[offAcknowledged]))
}

// append encodes a click as the next record and reports whether there was room. One goroutine at a time.
func (s *segment) append(c *schema.Click) bool {
	pos := int(s.written.Load())
	if len(s.data)-pos < maxRecordLen {
		return false
	}
	body := schema.AppendClickBody(s.data[pos+recordHeaderLen:pos+recordHeaderLen], c)
	binary.LittleEndian.PutUint32(s.data[pos+4:], crc32.Checksum(body, castagnoli))
	s.word(pos).Store(uint32(len(body)) + 1) // zero says that there is no record
	s.written.Store(uint32(pos + recordLen(len(body))))
	return true
}

// record returns the body of the record at pos, which is nil where none has been written. It borrows from the mapped
// memory. errCorrupt if what stands there is no whole record: after a power loss, pages may be missing.
func (s *segment) record(pos int) ([]byte, error) {
	if len(s.data)-pos < recordHeaderLen {
		return nil, nil
	}
	n := int(s.word(pos).Load()) - 1
	if n < 0 {
		return nil, nil
	}
	if n > schema.MaxClickBodyLen || len(s.data)-pos < recordLen(n) {
		return nil, errCorrupt
	}
	body := s.data[pos+recordHeaderLen : pos+recordHeaderLen+n]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(s.data[pos+4:]) {
		return nil, errCorrupt
	}
	return body, nil
}

func recordLen(body int) int { return recordHeaderLen + (body+7)&^7 }

// sync writes what was appended since the last call to the disk.
func (s *segment) sync() error {
	written := s.written.Load()
	if written == s.synced {
		return nil
	}
	if err := unix.Msync(s.data[:written], unix.MS_SYNC); err != nil {
		return fmt.Errorf("sync segment %q: %w", s.path, err)
	}
	s.synced = written
	return nil
}

// syncHeader writes the header to the disk.
func (s *segment) syncHeader() error {
	if err := unix.Msync(s.data[:headerLen], unix.MS_SYNC); err != nil {
		return fmt.Errorf("sync header of segment %q: %w", s.path, err)
	}
	return nil
}

func (s *segment) unmap() error {
	data := s.data
	s.data = nil
	if err := unix.Munmap(data); err != nil {
		return fmt.Errorf("unmap segment %q: %w", s.path, err)
	}
	return nil
}

// remove deletes the file and frees its memory.
func (s *segment) remove() error {
	return errors.Join(os.Remove(s.path), s.unmap())
}
