package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	magic         = "linksnap"
	version       = 1
	headerLen     = len(magic) + 8
	blockOverhead = 8
	maxBlock      = 96 << 10 // bytes of the records in a block, which takes the longest link
	keptBuffer    = 4 << 20
)

// Entry is a bit of a record's kind. Entries are numbered, and a new file has only those that are still cached.
const Entry = 1 << 6

// Record is a record of a file. Body is borrowed: it is valid until the callback that received it returns.
type Record struct {
	Kind   byte
	Number uint64 // of an entry
	Body   []byte // without the number
}

var (
	// errVersion means that the file has another version of the format.
	errVersion = errors.New("the format is that of another release")
	// errDamaged means that the rest of a file fails its checks.
	errDamaged = errors.New("damaged")
	// errRecord means that a record in a sound block cannot be read.
	errRecord = errors.New("unreadable record")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendHeader(dst []byte) []byte {
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[len(dst)-headerLen+4:], castagnoli))
}

// blocks are blocks that are being built. The last one may be open.
type blocks struct {
	bytes []byte
	last  int // where the open block begins; len(bytes) without one
}

// append adds a record. It returns false if the record is too long for a block.
func (b *blocks) append(kind byte, number uint64, body []byte) bool {
	var prefix [1 + 2*binary.MaxVarintLen64]byte
	n := 1 + binary.PutUvarint(prefix[1:], uint64(len(body)+numberLen(kind, number)))
	prefix[0] = kind
	if kind&Entry != 0 {
		n += binary.PutUvarint(prefix[n:], number)
	}
	size := n + len(body)
	if size > maxBlock {
		return false
	}
	if b.last < len(b.bytes) && len(b.bytes)-b.last-blockOverhead+size > maxBlock {
		b.seal()
	}
	if b.last == len(b.bytes) {
		b.bytes = append(b.bytes, make([]byte, blockOverhead)...)
	}
	b.bytes = append(append(b.bytes, prefix[:n]...), body...)
	return true
}

// numberLen returns the length of the number at the front of a body.
func numberLen(kind byte, number uint64) int {
	if kind&Entry == 0 {
		return 0
	}
	n := 1
	for ; number >= 1<<7; number >>= 7 {
		n++
	}
	return n
}

// seal completes the last block.
func (b *blocks) seal() {
	if b.last == len(b.bytes) {
		return
	}
	block := b.bytes[b.last:]
	binary.LittleEndian.PutUint32(block[4:], uint32(len(block)-blockOverhead))
	binary.LittleEndian.PutUint32(block, crc32.Checksum(block[4:], castagnoli))
	b.last = len(b.bytes)
}

// reset removes all blocks.
func (b *blocks) reset() {
	b.bytes, b.last = b.bytes[:0], 0
	if cap(b.bytes) > keptBuffer {
		b.bytes = nil
	}
}

// read calls each for the records of a file, and returns the length of its sound prefix. The error says why the rest is not sound:
// errVersion, errDamaged, or an error of r or of each. An empty file is damaged.
func read(r io.Reader, each func(Record) error) (sound int64, err error) {
	in := bufio.NewReaderSize(r, 4*maxBlock)
	block := make([]byte, blockOverhead+maxBlock)
	if err := readHeader(in, block[:headerLen]); err != nil {
		return 0, err
	}
	sound = int64(headerLen)
	for {
		n, err := readBlock(in, block)
		if errors.Is(err, io.EOF) {
			return sound, nil
		}
		if err == nil {
			if err = readRecords(block[blockOverhead:n], each); err != nil {
				err = fmt.Errorf("%w: %w", errRecord, err)
			}
		}
		if err != nil {
			return sound, fmt.Errorf("block at %d: %w", sound, err)
		}
		sound += int64(n)
	}
}

func readHeader(in io.Reader, header []byte) error {
	if _, err := io.ReadFull(in, header); err != nil {
		return damagedIfShort(err, "header")
	}
	rest := header[len(magic):]
	if string(header[:len(magic)]) != magic || binary.LittleEndian.Uint32(rest[4:]) != crc32.Checksum(header[:headerLen-4], castagnoli) {
		return fmt.Errorf("%w: header", errDamaged)
	}
	if v := binary.LittleEndian.Uint32(rest); v != version {
		return fmt.Errorf("%w: version %d, not %d", errVersion, v, version)
	}
	return nil
}

// readBlock reads a block and returns its length with its header. io.EOF at the end of the file.
func readBlock(in io.Reader, block []byte) (n int, err error) {
	if n, err := io.ReadFull(in, block[:blockOverhead]); err != nil {
		if n == 0 && errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		return 0, damagedIfShort(err, "header of the block")
	}
	length := int(binary.LittleEndian.Uint32(block[4:]))
	if length == 0 || length > maxBlock {
		return 0, fmt.Errorf("%w: length %d", errDamaged, length)
	}
	n = blockOverhead + length
	if _, err := io.ReadFull(in, block[blockOverhead:n]); err != nil {
		return 0, damagedIfShort(err, "records")
	}
	if binary.LittleEndian.Uint32(block) != crc32.Checksum(block[4:n], castagnoli) {
		return 0, fmt.Errorf("%w: checksum", errDamaged)
	}
	return n, nil
}

// damagedIfShort turns an unexpected end of the file into errDamaged. Other errors are those of the disk.
func damagedIfShort(err error, what string) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %s is cut short", errDamaged, what)
	}
	return err
}

func readRecords(records []byte, each func(Record) error) error {
	for len(records) > 0 {
		r := Record{Kind: records[0]}
		length, n := binary.Uvarint(records[1:])
		if n <= 0 || length > uint64(len(records)-1-n) {
			return fmt.Errorf("%w: length of a record", errDamaged)
		}
		r.Body, records = records[1+n:1+n+int(length)], records[1+n+int(length):]
		if r.Kind&Entry != 0 {
			if r.Number, n = binary.Uvarint(r.Body); n <= 0 {
				return fmt.Errorf("%w: number of an entry", errDamaged)
			}
			r.Body = r.Body[n:]
		}
		if err := each(r); err != nil {
			return err
		}
	}
	return nil
}
