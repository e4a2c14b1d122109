package stream

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go"
)

// Offsets of the fields in an encoded batch; the package doc has the layout.
const (
	sizeLen            = 4
	batchLengthOffset  = sizeLen + 8
	magicOffset        = batchLengthOffset + 4 + 4
	crcOffset          = magicOffset + 1
	attributesOffset   = crcOffset + 4
	lastDeltaOffset    = attributesOffset + 2
	baseTimeOffset     = lastDeltaOffset + 4
	maxTimeOffset      = baseTimeOffset + 8
	producerOffset     = maxTimeOffset + 8
	recordsCountOffset = producerOffset + 8 + 2 + 4
	batchHeaderLen     = recordsCountOffset + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encoder encodes batches. kafka-go could do so too, but takes twice the CPU time: it encodes through interfaces and
// streams, and compresses at zstd's default level.
type encoder struct {
	zstd *zstd.Encoder // fastest level: clicks are much alike, so a higher level saves only a tenth more
}

func newEncoder() (*encoder, error) {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true)) // batches are smaller than the window
	return &encoder{zstd: w}, err
}

// encode returns the batch as it stands in a produce request. The bytes belong to the batch and are valid until its
// next Append or Reset. A batch that is encoded again yields the same bytes.
func (e *encoder) encode(b *Batch) []byte {
	if len(b.encoded) > 0 {
		return b.encoded
	}
	b.records = b.records[:0]
	for i := range b.ends {
		b.records = appendRecord(b.records, i, b.Value(i))
	}
	dst := e.zstd.EncodeAll(b.records, append(b.encoded[:0], make([]byte, batchHeaderLen)...))
	binary.BigEndian.PutUint32(dst, uint32(len(dst)-sizeLen))
	binary.BigEndian.PutUint32(dst[batchLengthOffset:], uint32(len(dst)-batchLengthOffset-4))
	dst[magicOffset] = 2
	binary.BigEndian.PutUint16(dst[attributesOffset:], uint16(kafka.Zstd))
	binary.BigEndian.PutUint32(dst[lastDeltaOffset:], uint32(b.Len()-1))
	at := b.Time
	if at.IsZero() {
		at = time.Now()
	}
	binary.BigEndian.PutUint64(dst[baseTimeOffset:], uint64(at.UnixMilli()))
	binary.BigEndian.PutUint64(dst[maxTimeOffset:], uint64(at.UnixMilli()))
	for i := producerOffset; i < recordsCountOffset; i++ {
		dst[i] = 0xff
	}
	binary.BigEndian.PutUint32(dst[recordsCountOffset:], uint32(b.Len()))
	binary.BigEndian.PutUint32(dst[crcOffset:], crc32.Checksum(dst[attributesOffset:], castagnoli))
	b.encoded = dst
	return dst
}

// appendRecord appends record i of a batch.
func appendRecord(dst []byte, i int, value []byte) []byte {
	var scratch [2 * binary.MaxVarintLen64]byte
	head := append(scratch[:0], 0, 0) // attributes, timestampDelta
	head = binary.AppendVarint(head, int64(i))
	head = binary.AppendVarint(append(head, 1), int64(len(value))) // 1 is the varint of -1: no key
	dst = binary.AppendVarint(dst, int64(len(head)+len(value)+1))
	return append(append(append(dst, head...), value...), 0) // no headers
}
