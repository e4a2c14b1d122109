package spool

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestWriteZeros is inside of the package: the usual file systems can all reserve blocks, so that no test from outside
// gets here.
func TestWriteZeros(t *testing.T) {
	for _, size := range []int{0, 1, 1 << 16, 1<<16 + 1, 1 << 20} {
		path := filepath.Join(t.TempDir(), "zeros")
		f, err := os.Create(path)
		if err == nil {
			err = writeZeros(f, size)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, make([]byte, size)) {
			t.Fatalf("%d bytes, error %v; want %d zeros", len(data), err, size)
		}
	}
}
