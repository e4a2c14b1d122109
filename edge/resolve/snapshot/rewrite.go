package snapshot

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	bytesPerSecond = 128 << 20 // that are copied to a new file
	copyStep       = 1 << 20   // bytes between two pauses
	newSuffix      = ".new"
)

// rewrite replaces the file by a new one. If that fails, the old one stays, and discarded records stay lost.
func (l *Log) rewrite() {
	err := l.flush()
	l.mu.Lock()
	wasLost := l.lost
	if wasLost {
		l.lost = false // records that are appended from here on are for the new file
		l.since.Store(l.next)
	}
	l.mu.Unlock()
	if err == nil {
		err = l.replace(wasLost)
	}
	switch {
	case err == nil:
	case wasLost:
		l.fail(fmt.Errorf("make a new file: %w", err))
	case !errors.Is(err, errClosed): // the old file is still correct; it is replaced when it has grown by slack
		l.report(fmt.Errorf("make a new file: %w", err))
		l.base = l.size / 2
	}
}

// replace writes a new file and renames it to the old one's name. Unless records were discarded, the old file also gets the records
// that are appended meanwhile, in case the process is killed.
func (l *Log) replace(oldLost bool) error {
	end := l.size
	first, numbers := l.keep()
	slices.Sort(numbers)
	path := l.path + newSuffix
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	w := &writer{out: bufio.NewWriterSize(file, copyStep)}
	err = l.copyTo(w, end, first, numbers, oldLost)
	if err == nil {
		err = file.Sync() // before the renaming: otherwise a power failure could leave an empty file
	}
	if err == nil {
		err = os.Rename(path, l.path)
	}
	if err != nil {
		remove(path)
		return errors.Join(err, file.Close())
	}
	_ = l.file.Close()
	l.file, l.base = file, w.size
	l.resize(w.size)
	l.rewrites.Inc()
	syncDir(filepath.Dir(l.path))
	return nil
}

// copyTo writes the first records, then the entries before end in the old file that have these numbers, then everything after end.
func (l *Log) copyTo(w *writer, end int64, first []Record, numbers []uint64, oldLost bool) error {
	w.write(appendHeader(nil))
	for _, r := range first {
		w.blocks.append(r.Kind, 0, r.Body)
	}
	sound, err := read(io.NewSectionReader(l.file, 0, end), func(r Record) error {
		if _, found := slices.BinarySearch(numbers, r.Number); r.Kind&Entry == 0 || !found {
			return w.err
		}
		w.blocks.append(r.Kind, r.Number, r.Body)
		return l.pause(w, oldLost)
	})
	if w.err != nil {
		return w.err
	}
	if err != nil { // the entries after the error are saved again when they are looked up
		l.log.Warn("the snapshot of the cache has become unreadable", "path", l.path, "sound", sound, "error", err)
		l.mu.Lock()
		l.since.Store(l.next)
		l.mu.Unlock()
	}
	w.flush()
	if !oldLost {
		if err := l.flush(); err != nil {
			return err
		}
		_, w.err = io.Copy(w, io.NewSectionReader(l.file, end, l.size-end))
	}
	return errors.Join(w.err, w.out.Flush())
}

var errClosed = errors.New("the log is being closed")

// pause bounds the rate of copying. It runs after each copyStep, and writes pending records to the old file.
func (l *Log) pause(w *writer, oldLost bool) error {
	if len(w.blocks.bytes) < copyStep {
		return w.err
	}
	w.flush()
	if w.err == nil && !oldLost {
		w.err = l.flush()
	}
	select {
	case <-l.stop:
		w.err = errClosed
	case <-time.After(time.Second * copyStep / bytesPerSecond):
	}
	return w.err
}

// writer writes a new file. It remembers its first error.
type writer struct {
	out    *bufio.Writer
	blocks blocks
	size   int64
	err    error
}

// flush writes the blocks.
func (w *writer) flush() {
	w.blocks.seal()
	w.write(w.blocks.bytes)
	w.blocks.reset()
}

func (w *writer) write(b []byte) {
	if w.err == nil {
		var n int
		n, w.err = w.out.Write(b)
		w.size += int64(n)
	}
}

// Write implements io.Writer.
func (w *writer) Write(b []byte) (int, error) {
	w.write(b)
	return len(b), w.err
}

// syncDir syncs a folder. Without it, a power failure could bring the old file back, which is a correct prefix too.
func syncDir(path string) {
	if d, err := os.Open(path); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
