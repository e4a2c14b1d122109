package linkstore

import (
	"fmt"
	"time"
)

// bytes32 reads a column of 32 bytes.
type bytes32 struct{ to *[32]byte }

// Scan implements sql.Scanner.
func (b bytes32) Scan(column any) error {
	bytes, ok := column.([]byte)
	if !ok || len(bytes) != len(b.to) {
		return fmt.Errorf("scan %T as %d bytes", column, len(b.to))
	}
	copy(b.to[:], bytes)
	return nil
}

// millis reads a column of whole milliseconds.
type millis struct{ to *time.Duration }

// Scan implements sql.Scanner.
func (m millis) Scan(column any) error {
	n, ok := column.(int64)
	if !ok {
		return fmt.Errorf("scan %T as milliseconds", column)
	}
	*m.to = time.Duration(n) * time.Millisecond
	return nil
}
