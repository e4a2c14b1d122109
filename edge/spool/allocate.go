package spool

import "os"

// writeZeros reserves a file's blocks where the system has no call for it.
func writeZeros(f *os.File, size int) error {
	zeros := make([]byte, 1<<16)
	for size > 0 {
		n, err := f.Write(zeros[:min(size, len(zeros))])
		if err != nil {
			return err
		}
		size -= n
	}
	return nil
}
