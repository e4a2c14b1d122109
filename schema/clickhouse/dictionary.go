package clickhouse

import (
	"encoding/binary"
	"math"
)

// maxNames bounds the names that a dictionary has room for between batches.
const maxNames = 10_000

// dictionary is a column LowCardinality(String), encoded as in the native format. clickhouse-go would look up an
// interface value per row for it, which takes more than twice as long.
type dictionary struct {
	names  []string // the first one is "", which the server takes for the default
	number map[string]uint32
	rows   []uint32 // in names
}

// Kinds of the numbers of a row, and what an encoded column has: names, which replace those of earlier blocks.
const (
	rowUint8 = iota
	rowUint16
	rowUint32

	hasNames = 1<<9 | 1<<10
)

// reset empties the column, and makes room for some rows.
func (d *dictionary) reset(rows int) {
	if d.number == nil || len(d.number) > maxNames {
		d.number = map[string]uint32{}
	}
	clear(d.number)
	d.number[""], d.names, d.rows = 0, append(d.names[:0], ""), resized(d.rows, rows)
}

// add appends a row, which is often the same as the last one.
func (d *dictionary) add(name string) {
	if n := len(d.rows); n > 0 && d.names[d.rows[n-1]] == name {
		d.rows = append(d.rows, d.rows[n-1])
		return
	}
	number, ok := d.number[name]
	if !ok {
		number = uint32(len(d.names))
		d.number[name], d.names = number, append(d.names, name)
	}
	d.rows = append(d.rows, number)
}

// appendTo appends the encoded column.
func (d *dictionary) appendTo(dst []byte) []byte {
	kind := uint64(rowUint32)
	switch last := len(d.names) - 1; {
	case last <= math.MaxUint8:
		kind = rowUint8
	case last <= math.MaxUint16:
		kind = rowUint16
	}
	dst = binary.LittleEndian.AppendUint64(dst, hasNames|kind)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(d.names)))
	for _, name := range d.names {
		dst = append(binary.AppendUvarint(dst, uint64(len(name))), name...)
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(d.rows)))
	for _, row := range d.rows {
		switch kind {
		case rowUint8:
			dst = append(dst, uint8(row))
		case rowUint16:
			dst = binary.LittleEndian.AppendUint16(dst, uint16(row))
		default:
			dst = binary.LittleEndian.AppendUint32(dst, row)
		}
	}
	return dst
}
