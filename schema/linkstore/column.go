package linkstore

import "fmt"

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
