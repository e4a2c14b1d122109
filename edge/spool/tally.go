package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// tallyName is a file in a spool's directory. Its first 8 bytes say how many clicks have found no room since the
// directory was created. It is mapped, so that the number survives kill -9 as the clicks do.
const (
	tallyName  = "dropped"
	tallyBytes = 4 << 10 // a page
)

// tally counts clicks that find no room.
type tally struct {
	path    string
	mu      sync.Mutex
	file    []byte // mapped; nil until it can be created
	waiting uint64 // clicks that are not in the file
}

// add counts a click.
func (t *tally) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting++
	if t.file != nil {
		_ = t.write() // the next call, or persist, tries again
	}
}

// persist writes to the file what is waiting. It opens the file first if that was not possible before.
func (t *tally) persist() (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		if t.file, err = openTally(t.path); err != nil {
			return fmt.Errorf("open %q: %w", t.path, err)
		}
	}
	return t.write()
}

// write fails with errFault. Without clicks that wait it leaves the page clean. Callers hold mu.
func (t *tally) write() error {
	if t.waiting == 0 {
		return nil
	}
	return guarded(func() {
		binary.LittleEndian.PutUint64(t.file, binary.LittleEndian.Uint64(t.file)+t.waiting)
		t.waiting = 0
	})
}

// close writes the file to the disk. Clicks that are added later are not in it.
func (t *tally) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		return nil
	}
	err := errors.Join(t.write(), unix.Msync(t.file, unix.MS_SYNC), unix.Munmap(t.file))
	t.file = nil
	if err != nil {
		return fmt.Errorf("close %q: %w", t.path, err)
	}
	return nil
}

// openTally maps the file. It creates the file if there is none, or if it was never completed.
func openTally(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < tallyBytes {
		return allocateAndMap(f, tallyBytes)
	}
	return unix.Mmap(int(f.Fd()), 0, tallyBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// readTally returns the number in the file of a spool that others may use, 0 if there is none.
func readTally(path string) (uint64, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var count [8]byte
	if _, err := f.ReadAt(count[:], 0); err != nil { // not completed yet
		return 0, nil
	}
	return binary.LittleEndian.Uint64(count[:]), nil
}
