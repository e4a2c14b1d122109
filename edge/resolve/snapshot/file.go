package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"
)

const (
	bytesPerSecond = 128 << 20 // of a dump, unless the process ends
	pieceBytes     = 1 << 20   // between two pauses
	listBytes      = 4 << 20
	maxListBytes   = 16 << 20
	queuedKeys     = 4 << 10
)

// errStopped means that a dump was given up because the process ends.
var errStopped = errors.New("the process ends")

// Writer writes the records of a dump.
type Writer struct {
	file   *os.File
	buffer []byte
	sum    uint32
	stop   <-chan struct{} // ends the dump; nil: it neither ends early nor pauses
}

// Add adds a record, whose kind is not 0. It copies body. After an error the dump cannot succeed. A record that is
// longer than maxBody is left out.
func (w *Writer) Add(kind byte, body []byte) error {
	if len(body) > maxBody {
		return nil
	}
	if w.buffer = appendRecord(w.buffer, kind, body); len(w.buffer) < pieceBytes {
		return nil
	}
	if err := w.flush(); err != nil || w.stop == nil {
		return err
	}
	select {
	case <-w.stop:
		return errStopped
	case <-time.After(time.Second * pieceBytes / bytesPerSecond):
		return nil
	}
}

func (w *Writer) flush() error {
	w.sum = crc32.Update(w.sum, castagnoli, w.buffer)
	_, err := w.file.Write(w.buffer)
	w.buffer = w.buffer[:0]
	return err
}

// end completes the dump, and syncs it: without that, a power failure could leave a renamed file empty.
func (w *Writer) end() error {
	w.buffer = binary.LittleEndian.AppendUint32(w.buffer, endKind<<24|sumLen)
	if err := w.flush(); err != nil {
		return err
	}
	if _, err := w.file.Write(binary.LittleEndian.AppendUint32(nil, w.sum)); err != nil {
		return err
	}
	return w.file.Sync()
}

// writeDump writes a dump to a new file.
func writeDump(path string, generation uint64, fill func(*Writer) error, stop <-chan struct{}) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffer := make([]byte, 0, pieceBytes+prefixLen+maxBody)
	w := &Writer{file: file, stop: stop, buffer: appendHeader(buffer, generation)}
	if err := fill(w); err != nil {
		return err
	}
	return w.end()
}

// readDumpFile is readDump for a file.
func readDumpFile(path string, each func(kind byte, body []byte)) (generation uint64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return readDump(file, each)
}

// list is the open file of a list.
type list struct {
	*os.File
	size int
}

func listPath(path string, generation uint64) string { return path + "." + generationKey(generation) }

// generationKey is the first key of a list.
func generationKey(generation uint64) string { return fmt.Sprintf("%016x", generation) }

func createList(path string, generation uint64) (*list, error) {
	file, err := os.OpenFile(listPath(path, generation), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	l := &list{File: file}
	if err := l.append(appendKey(nil, generationKey(generation))); err != nil {
		l.remove()
		return nil, err
	}
	return l, nil
}

// openList opens the list of a dump, and returns the dropped keys.
func openList(path string, generation uint64) (l *list, keys []string, err error) {
	file, err := os.OpenFile(listPath(path, generation), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, 2*maxListBytes))
	if err == nil {
		keys, err = readList(content)
	}
	if err == nil && (len(keys) == 0 || keys[0] != generationKey(generation) || len(content) == 2*maxListBytes) {
		err = errDamaged
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read the list of dropped keys: %w", err), file.Close())
	}
	return &list{file, len(content)}, keys[1:], nil
}

// append appends bytes to the list, which may be nil.
func (l *list) append(keys []byte) error {
	if l == nil {
		return nil
	}
	n, err := l.Write(keys)
	l.size += n
	return err
}

// remove closes and removes the list, which may be nil.
func (l *list) remove() {
	if l != nil {
		_ = l.Close()
		_ = os.Remove(l.Name())
	}
}
