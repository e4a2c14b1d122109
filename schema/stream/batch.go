package stream

import "time"

// Batch is a sequence of record values that a producer sends as one. It owns its memory and reuses it.
type Batch struct {
	Time time.Time // of every record
	data []byte
	ends []int // where each value ends in data

	records, set []byte // what is sent, see compressor.recordSet; set is empty until it is
}

// Reset empties the batch for records of the given time.
func (b *Batch) Reset(at time.Time) {
	b.Time, b.data, b.ends, b.set = at, b.data[:0], b.ends[:0], b.set[:0]
}

// Append adds the value that head and body make together; both are copied.
func (b *Batch) Append(head, body []byte) {
	b.data = append(append(b.data, head...), body...)
	b.ends = append(b.ends, len(b.data))
	b.set = b.set[:0]
}

// Len returns the number of values, Size their bytes.
func (b *Batch) Len() int  { return len(b.ends) }
func (b *Batch) Size() int { return len(b.data) }

// Value returns value i, borrowed until the next Reset.
func (b *Batch) Value(i int) []byte {
	start := 0
	if i > 0 {
		start = b.ends[i-1]
	}
	return b.data[start:b.ends[i]]
}
