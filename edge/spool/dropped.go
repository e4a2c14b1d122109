package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// dropCountName is a file in a spool's directory. Its first 8 bytes say how many clicks have found no room since the
// directory was created. It is mapped, so that the number survives kill -9 as the clicks do.
const (
	dropCountName  = "dropped"
	dropCountBytes = 4 << 10 // a page
)

// dropCount counts clicks that find no room.
type dropCount struct {
	path    string
	mu      sync.Mutex
	file    []byte // mapped; nil until it can be created
	waiting uint64 // clicks that are not in the file
}

// add counts a click.
func (c *dropCount) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting++
	if c.file != nil {
		_ = c.write() // the next call, or persist, tries again
	}
}

// persist writes to the file what is waiting. It opens the file first if that was not possible before.
func (c *dropCount) persist() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		if c.file, err = openDropCount(c.path); err != nil {
			return fmt.Errorf("open %q: %w", c.path, err)
		}
	}
	return c.write()
}

// write fails with errFault. Without clicks that wait it leaves the page clean. Callers hold mu.
func (c *dropCount) write() error {
	if c.waiting == 0 {
		return nil
	}
	return guarded(func() {
		binary.LittleEndian.PutUint64(c.file, binary.LittleEndian.Uint64(c.file)+c.waiting)
		c.waiting = 0
	})
}

// close writes the file to the disk. Clicks that are added later are not in it.
func (c *dropCount) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	err := errors.Join(c.write(), unix.Msync(c.file, unix.MS_SYNC), unix.Munmap(c.file))
	c.file = nil
	if err != nil {
		return fmt.Errorf("close %q: %w", c.path, err)
	}
	return nil
}

// openDropCount maps the file. It creates a file that is missing or incomplete.
func openDropCount(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < dropCountBytes {
		return allocateAndMap(f, dropCountBytes)
	}
	return unix.Mmap(int(f.Fd()), 0, dropCountBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// readDropCount returns the number in the file of a spool, which another process may use; 0 without a file.
func readDropCount(path string) (uint64, error) {
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
