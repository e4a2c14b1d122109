package stream

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go"
)

// Where the fields of a record batch are, version 2 of Kafka's message format, behind the size that a produce request
// has before it: https://kafka.apache.org/documentation/#recordbatch
const (
	offBatchLength = 4 + 8
	offMagic       = offBatchLength + 4 + 4
	offCheck       = offMagic + 1
	offAttributes  = offCheck + 4 // from here on the check counts
	offLastDelta   = offAttributes + 2
	offFirstTime   = offLastDelta + 4
	offMaxTime     = offFirstTime + 8
	offProducer    = offMaxTime + 8 // id, epoch and first sequence number
	offCount       = offProducer + 8 + 2 + 4
	batchHeaderLen = offCount + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// compressor makes the record sets of a client. kafka-go makes them as well, at twice the CPU time: it encodes through
// interfaces and streams, and compresses no faster than with zstd's default level.
type compressor struct {
	codec kafka.Compression
	zstd  *zstd.Encoder // at its fastest level: clicks resemble each other, and more effort gains them a tenth
}

func newCompressor(codec kafka.Compression) (*compressor, error) {
	c := &compressor{codec: codec}
	if codec != kafka.Zstd {
		return c, nil
	}
	var err error
	c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true)) // a batch is smaller
	return c, err
}

// recordSet returns the batch as a produce request has it. The bytes belong to the batch and are good until it is
// filled anew.
func (c *compressor) recordSet(b *Batch) ([]byte, error) {
	if len(b.set) > 0 {
		return b.set, nil // a repetition
	}
	b.records = b.records[:0]
	for i := range b.ends {
		b.records = appendRecord(b.records, i, b.Value(i))
	}
	set := append(b.set[:0], make([]byte, batchHeaderLen)...)
	set, err := c.compress(set, b.records)
	if err != nil {
		return nil, fmt.Errorf("compress %d records: %w", b.Len(), err)
	}
	binary.BigEndian.PutUint32(set, uint32(len(set)-4))
	binary.BigEndian.PutUint32(set[offBatchLength:], uint32(len(set)-offBatchLength-4))
	set[offMagic] = 2
	binary.BigEndian.PutUint16(set[offAttributes:], uint16(c.codec))
	binary.BigEndian.PutUint32(set[offLastDelta:], uint32(b.Len()-1))
	at := b.Time
	if at.IsZero() {
		at = time.Now()
	}
	binary.BigEndian.PutUint64(set[offFirstTime:], uint64(at.UnixMilli()))
	binary.BigEndian.PutUint64(set[offMaxTime:], uint64(at.UnixMilli()))
	for i := offProducer; i < offCount; i++ {
		set[i] = 0xff // -1: there is none
	}
	binary.BigEndian.PutUint32(set[offCount:], uint32(b.Len()))
	binary.BigEndian.PutUint32(set[offCheck:], crc32.Checksum(set[offAttributes:], castagnoli))
	b.set = set
	return set, nil
}

func (c *compressor) compress(dst, records []byte) ([]byte, error) {
	switch {
	case c.zstd != nil:
		return c.zstd.EncodeAll(records, dst), nil
	case c.codec == 0:
		return append(dst, records...), nil
	}
	out := bytes.NewBuffer(dst)
	w := c.codec.Codec().NewWriter(out)
	if _, err := w.Write(records); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}

// appendRecord appends record i of a batch: no attributes, the time of the batch, no key and no headers.
func appendRecord(dst []byte, i int, value []byte) []byte {
	var numbers [2 * binary.MaxVarintLen64]byte
	head := binary.AppendVarint(append(numbers[:0], 0, 0), int64(i))
	head = binary.AppendVarint(append(head, 1), int64(len(value))) // a varint of -1, the length of no key, is 1
	dst = binary.AppendVarint(dst, int64(len(head)+len(value)+1))
	return append(append(append(dst, head...), value...), 0)
}
