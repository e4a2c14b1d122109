package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"linkstream/schema"
)

// Offsets and sizes of the format that the package documentation describes.
const (
	pageBytes       = 4 << 10
	headerLen       = 64
	offIncarnation  = 8
	offLane         = 24
	offPartition    = 28
	offFirstSeq     = 32
	offAcknowledged = 40
	offChecksum     = 48

	recordAlign     = 8
	recordHeaderLen = 8
	minRecordLen    = recordHeaderLen + recordAlign
	maxRecordLen    = recordHeaderLen + (schema.MaxClickBodyLen+recordAlign-1)&^(recordAlign-1)

	// The first word of a record has the length of its body plus one in its low bits, and the record's index in the
	// segment above them.
	lengthBits = 12
	maxFileLen = minRecordLen << (32 - lengthBits) // more records would need larger indexes
)

var _ = [1<<lengthBits - 1 - schema.MaxClickBodyLen]struct{}{} // its length plus one has room

var (
	magic      = [8]byte{'L', 'S', 'S', 'P', 'O', 'O', 'L', '1'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errUnused        = errors.New("segment has never been active")
	errDamagedHeader = errors.New("header of segment is damaged")
	errDamagedRecord = errors.New("records are damaged")
)

// onSync is Config.OnSync; it may be nil.
type onSync func(path string, size int)

func (f onSync) call(path string, size int) {
	if f != nil {
		f(path, size)
	}
}

// segment is a mapped file. The package documentation describes its states.
type segment struct {
	path     string
	data     []byte        // the mapped file; nil once it is unmapped
	written  atomic.Uint32 // bytes of header and records; 0 if recovered
	synced   uint32        // how many of written are on the disk
	records  uint32        // how many were appended
	sealed   atomic.Bool   // no record will be appended
	faulty   atomic.Bool   // an append has failed because the kernel has no page for it
	damaged  atomic.Bool   // clicks could not be read
	firstSeq uint64
	seed     uint32          // where the checksums of records begin
	limited  map[int64]int64 // clicks that count towards limits, by link
	onSync   onSync
}

// createSegment creates and maps a spare. It allocates all blocks first; otherwise an append would get SIGBUS when the
// disk is full.
func createSegment(path string, size int, onSync onSync) (*segment, error) {
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
	return &segment{path: path, data: data, onSync: onSync}, nil
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

// activate turns a spare into an active segment by writing its header. The magic comes last: without it the file is
// still a spare. activate fails with errFault.
func (s *segment) activate(lane schema.Lane, partition uint32, firstSeq uint64) error {
	err := guarded(func() {
		copy(s.data[offIncarnation:], lane.Incarnation[:])
		binary.LittleEndian.PutUint32(s.data[offLane:], lane.Number)
		binary.LittleEndian.PutUint64(s.data[offFirstSeq:], firstSeq)
		s.word(offPartition).Store(partition)
		binary.LittleEndian.PutUint32(s.data[offChecksum:], headerChecksum(s.data))
		copy(s.data, magic[:])
	})
	if err != nil {
		return err
	}
	s.firstSeq, s.seed = firstSeq, headerChecksum(s.data)
	s.written.Store(headerLen)
	return nil
}

// openSegment maps a file of an earlier process for reading. It fails with errUnused if the file is a spare, and with
// errDamagedHeader if its header fails the check.
func openSegment(path string, onSync onSync) (s *segment, lane schema.Lane, err error) {
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
	s = &segment{path: path, data: data, onSync: onSync}
	s.sealed.Store(true)
	fault := guarded(func() {
		switch {
		case !s.used():
			err = errUnused
		case !headerValid(data):
			err = errDamagedHeader
		default:
			lane.Incarnation = schema.Incarnation(data[offIncarnation:])
			lane.Number = binary.LittleEndian.Uint32(data[offLane:])
			s.firstSeq, s.seed = binary.LittleEndian.Uint64(data[offFirstSeq:]), headerChecksum(data)
		}
	})
	if fault != nil {
		err = errDamagedHeader
	}
	if err != nil {
		return nil, lane, errors.Join(err, s.unmap())
	}
	return s, lane, nil
}

// used reports whether the segment has ever been active. A missing magic alone does not mean that it has not: a power
// failure may lose the first page and keep others.
func (s *segment) used() bool {
	records := s.data[min(headerLen, len(s.data)):]
	return !bytes.HasPrefix(s.data, make([]byte, len(magic))) || !isZero(records)
}

// headerValid reports whether data begins with the header of a segment that was active.
func headerValid(data []byte) bool {
	return len(data) >= headerLen && [8]byte(data) == magic &&
		binary.LittleEndian.Uint32(data[offChecksum:]) == headerChecksum(data)
}

// headerChecksum covers the fields that never change once the segment is active.
func headerChecksum(header []byte) uint32 {
	sum := crc32.Checksum(header[offIncarnation:offPartition], castagnoli)
	return crc32.Update(sum, castagnoli, header[offFirstSeq:offAcknowledged])
}

func (s *segment) word(off int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&s.data[off]))
}

// partition returns the lane's partition plus one, or 0 if the lane has none.
func (s *segment) partition() uint32 { return s.word(offPartition).Load() }

func (s *segment) acknowledged() *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&s.data[offAcknowledged]))
}

// acknowledgedSeq returns the seq of the last acknowledged click, 0 if no file or header says it.
func (s *segment) acknowledgedSeq() (seq uint64) {
	_ = guarded(func() { seq = s.acknowledged().Load() })
	return seq
}

// append encodes a click as the next record and reports whether there was room. Callers hold the lane's mu. After a
// fault there is no room: the bytes of the failed append would look like a record behind a shorter one.
func (s *segment) append(c *schema.Click) bool {
	pos := int(s.written.Load())
	if len(s.data)-pos < maxRecordLen || s.faulty.Load() {
		return false
	}
	err := guarded(func() {
		body := schema.AppendClickBody(s.data[pos+recordHeaderLen:pos+recordHeaderLen], c)
		binary.LittleEndian.PutUint32(s.data[pos+4:], s.checksum(s.records, body))
		s.word(pos).Store(s.records<<lengthBits | uint32(len(body)+1)) // zero means that there is no record
		s.written.Store(uint32(pos + recordLen(len(body))))
		s.records++
	})
	if err != nil {
		s.faulty.Store(true)
	} else if c.Limited {
		s.countLimited(c.LinkID)
	}
	return err == nil
}

// checksum returns the checksum of a record. Nobody who has not read the header can write bytes that pass for a record.
func (s *segment) checksum(index uint32, body []byte) uint32 {
	return crc32.Update(s.seed+index, castagnoli, body)
}

// place is a record's offset and index.
type place struct {
	pos   int
	index uint32
}

// start is the place of a segment's first record.
var start = place{pos: headerLen}

// end returns the end of the records that were found.
func (s *segment) end() int {
	if written := s.written.Load(); written > 0 {
		return int(written)
	}
	return len(s.data)
}

// next returns the body of the record at a place, which is valid until the segment is unmapped. If the record is
// damaged, next returns the first record behind it whose checksum and index are right. The body is nil at the end of
// the records.
func (s *segment) next(from place) (body []byte, at place) {
	end := s.end()
	for at = from; at.pos+recordHeaderLen <= end; {
		fault := guarded(func() {
			for ; body == nil && at.pos+recordHeaderLen <= end; at.pos += recordAlign {
				if body, at.index = s.record(from, at.pos, end); body != nil {
					break
				}
			}
		})
		if fault != nil {
			at.pos = (at.pos/pageBytes + 1) * pageBytes
			continue
		}
		if body != nil && at.pos > from.pos && s.appended(from, end) { // by another process since it was looked at
			body, at = nil, from
			continue
		}
		break
	}
	return body, at
}

// all returns the place of each record, and that behind it.
func (s *segment) all() iter.Seq2[place, place] {
	return func(yield func(at, next place) bool) {
		for from := start; ; {
			body, at := s.next(from)
			if body == nil {
				return
			}
			from = place{at.pos + recordLen(len(body)), at.index + 1}
			if !yield(at, from) {
				return
			}
		}
	}
}

// appended reports whether there is a record at a place.
func (s *segment) appended(at place, end int) (found bool) {
	_ = guarded(func() { body, _ := s.record(at, at.pos, end); found = body != nil })
	return found
}

// record returns the body and the index of the record at pos. The body is nil if there is no whole record that can
// stand there if the record of another place stands at that place. Callers are guarded.
func (s *segment) record(from place, pos, end int) (body []byte, index uint32) {
	word := s.word(pos).Load()
	n := int(word&(1<<lengthBits-1)) - 1
	index = word >> lengthBits
	if n < 0 || n > schema.MaxClickBodyLen || pos+recordLen(n) > end {
		return nil, 0
	}
	least, most := from.index, from.index+uint32(pos-from.pos)/minRecordLen
	if pos > from.pos {
		least++
	}
	if index < least || index > most {
		return nil, 0
	}
	body = s.data[pos+recordHeaderLen : pos+recordHeaderLen+n]
	if s.checksum(index, body) != binary.LittleEndian.Uint32(s.data[pos+4:]) {
		return nil, 0
	}
	return body, index
}

// rest looks at what follows the last record. A process that is killed while it appends a click leaves bytes behind a
// word of zeros: unfinished. damaged if there is more, or a record was there.
func (s *segment) rest(at place) (unfinished, damaged bool) {
	if written := int(s.written.Load()); written > 0 {
		return false, at.pos < written
	}
	fault := guarded(func() {
		data := s.data[min(at.pos, len(s.data)):]
		near := data[:min(len(data), maxRecordLen)]
		unfinished = !isZero(near)
		damaged = !isZero(data[len(near):]) || !isZero(near[:min(len(near), 4)])
	})
	return unfinished, damaged || fault != nil
}

func isZero(data []byte) bool { return bytes.Count(data, []byte{0}) == len(data) }

func recordLen(body int) int { return recordHeaderLen + (body+recordAlign-1)&^(recordAlign-1) }

// sync writes the records that were appended since the last call to the disk.
func (s *segment) sync() error {
	written := s.written.Load()
	if written == s.synced {
		return nil
	}
	if err := s.syncTo(int(written)); err != nil {
		return err
	}
	s.synced = written
	return nil
}

// syncTo writes the first size bytes to the disk.
func (s *segment) syncTo(size int) error {
	if err := unix.Msync(s.data[:size], unix.MS_SYNC); err != nil {
		return fmt.Errorf("sync segment %q: %w", s.path, err)
	}
	s.onSync.call(s.path, size)
	return nil
}

// setPartition writes the lane's partition plus one to the disk.
func (s *segment) setPartition(partition uint32) error {
	if err := guarded(func() { s.word(offPartition).Store(partition) }); err != nil {
		return fmt.Errorf("segment %q: %w", s.path, err)
	}
	return s.syncTo(headerLen)
}

// setAcknowledged notes the seq of the last click acknowledged. Without the note, which a fault prevents, a later
// process ships the clicks again, and consumers drop the repetitions.
func (s *segment) setAcknowledged(seq uint64) { _ = guarded(func() { s.acknowledged().Store(seq) }) }

func (s *segment) unmap() error {
	data := s.data
	s.data = nil
	if err := unix.Munmap(data); err != nil {
		return fmt.Errorf("unmap segment %q: %w", s.path, err)
	}
	return nil
}
