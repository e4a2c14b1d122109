package stream

import "time"

// Batch is a sequence of record values that a producer sends in one request. It owns its memory and reuses it. The zero
// value is an empty batch.
type Batch struct {
	Time time.Time // timestamp of every record; zero: the time of encoding
	data []byte
	ends []int // end of each value in data

	records, encoded []byte // scratch and result of encoder.encode; encoded is empty until then
}

// Reset empties the batch for records with the given timestamp.
func (b *Batch) Reset(at time.Time) {
	b.Time, b.data, b.ends, b.encoded = at, b.data[:0], b.ends[:0], b.encoded[:0]
}

// SetTime sets the timestamp of the records. A request that is still under way reads the batch as it was.
func (b *Batch) SetTime(at time.Time) { b.Time, b.encoded = at, nil }

// Drop empties the batch. A request that is still under way reads the batch as it was.
func (b *Batch) Drop() {
	b.encoded = nil
	b.Reset(time.Time{})
}

// Append adds a value, the concatenation of head and body. It copies both.
func (b *Batch) Append(head, body []byte) {
	b.data = append(append(b.data, head...), body...)
	b.ends = append(b.ends, len(b.data))
	b.encoded = b.encoded[:0]
}

// Len returns the number of values.
func (b *Batch) Len() int { return len(b.ends) }

// Size returns the total length of the values in bytes, before compression.
func (b *Batch) Size() int { return len(b.data) }

// Value returns value i. It is valid until the next Append or Reset.
func (b *Batch) Value(i int) []byte {
	start := 0
	if i > 0 {
		start = b.ends[i-1]
	}
	return b.data[start:b.ends[i]]
}
