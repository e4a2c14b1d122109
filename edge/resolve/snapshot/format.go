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
	magic     = "linksnp2" // 1.0.0 wrote "linksnap"
	headerLen = len(magic) + 8
	prefixLen = 4         // of a record
	maxBody   = 256 << 10 // bytes; the longest link takes 96 KiB
	endKind   = 0
	sumLen    = 4
	maxKeyLen = 1<<16 - 1
)

// errDamaged means that a file is not complete, or has other bytes than were written.
var errDamaged = errors.New("damaged, or of another release")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendHeader(dst []byte, generation uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, magic...), generation)
}

// appendRecord appends a record of at most maxBody bytes.
func appendRecord(dst []byte, kind byte, body []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(kind)<<24|uint32(len(body)))
	return append(dst, body...)
}

// dumpReader reads a dump, and sums the bytes that it has read.
type dumpReader struct {
	in  *bufio.Reader
	sum uint32
}

// readDump calls each for the records of a dump, and returns its generation. The body is valid until each returns. The
// check is at the end: each may have been called before readDump fails.
func readDump(in io.Reader, each func(kind byte, body []byte)) (generation uint64, err error) {
	r := dumpReader{in: bufio.NewReaderSize(in, 4*maxBody)}
	header, err := r.take(headerLen)
	if err != nil {
		return 0, err
	}
	if string(header[:len(magic)]) != magic {
		return 0, errDamaged
	}
	generation = binary.LittleEndian.Uint64(header[len(magic):])
	for {
		prefix, err := r.take(prefixLen)
		if err != nil {
			return 0, err
		}
		word, sum := binary.LittleEndian.Uint32(prefix), r.sum
		kind, length := byte(word>>24), int(word&(1<<24-1))
		if length > maxBody {
			return 0, errDamaged
		}
		body, err := r.take(length)
		if err != nil {
			return 0, err
		}
		if kind == endKind {
			if _, err := r.in.Peek(1); err != io.EOF || len(body) != sumLen || binary.LittleEndian.Uint32(body) != sum {
				return 0, errDamaged
			}
			return generation, nil
		}
		each(kind, body)
	}
}

// take returns the next n bytes, which are valid until the next call.
func (r *dumpReader) take(n int) ([]byte, error) {
	b, err := r.in.Peek(n)
	if err == io.EOF {
		return nil, errDamaged
	}
	if err != nil {
		return nil, err
	}
	r.sum = crc32.Update(r.sum, castagnoli, b)
	_, err = r.in.Discard(n)
	return b, err
}

// appendKey appends a key, of at most maxKeyLen bytes, to a list.
func appendKey(dst []byte, key string) []byte {
	begin := len(dst)
	dst = binary.LittleEndian.AppendUint16(append(dst, 0, 0, 0, 0), uint16(len(key)))
	dst = append(dst, key...)
	binary.LittleEndian.PutUint32(dst[begin:], crc32.Checksum(dst[begin+sumLen:], castagnoli))
	return dst
}

// readList returns the keys of a list.
func readList(list []byte) (keys []string, err error) {
	const prefix = sumLen + 2
	for rest := list; len(rest) > 0; {
		if len(rest) < prefix {
			return nil, errDamaged
		}
		end := prefix + int(binary.LittleEndian.Uint16(rest[sumLen:]))
		if end > len(rest) || binary.LittleEndian.Uint32(rest) != crc32.Checksum(rest[sumLen:end], castagnoli) {
			return nil, fmt.Errorf("key at %d: %w", len(list)-len(rest), errDamaged)
		}
		keys = append(keys, string(rest[prefix:end]))
		rest = rest[end:]
	}
	return keys, nil
}
