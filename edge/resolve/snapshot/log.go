package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema/service"
)

const (
	flushInterval = 50 * time.Millisecond
	retryInterval = 5 * time.Second // between attempts to make a new file after the disk has failed
	maxPending    = 16 << 20        // bytes that wait for the disk
	slack         = 1 << 20         // bytes that a file may grow before a new one is made, however small it is
)

// Log is a file of records. Append, Lost and SavedSince may be called concurrently.
type Log struct {
	path string
	log  *slog.Logger
	keep Keep

	mu      sync.Mutex
	pending blocks
	next    uint64 // number of the next entry
	lost    bool   // records were discarded; nothing is pending
	since   atomic.Uint64

	wake chan struct{} // has an element if something is pending
	stop chan struct{}
	done sync.WaitGroup

	// Of the goroutine that writes.
	file    *os.File
	writing blocks // what is being written
	size    int64  // of the file
	base    int64  // its size when it was made
	retryAt time.Time

	bytes              atomic.Int64
	failures, rewrites *metrics.Counter
}

// Keep returns the contents of a new file: its first records, which say up to which change the entries are correct, and the numbers of
// the cached entries, in any order. It determines the records before it lists the entries.
type Keep func() (first []Record, numbers []uint64)

// Open opens or creates the file at path, and calls each for every record, up to the first one for which each returns an error. If the
// file is damaged, has another version or cannot be read to its end, its sound prefix is used and the rest is cut off. Nobody else may
// use the file. The caller must call Close.
func Open(path string, each func(Record) error, set *metrics.Set, log *slog.Logger) (*Log, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	remove(path + newSuffix)
	l := &Log{path: path, log: log, next: 1, file: file, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	l.failures = service.NewCounter(set, "linkstream_edge_snapshot_failures_total", "Failures to write the snapshot of what is cached.")
	l.rewrites = service.NewCounter(set, "linkstream_edge_snapshot_rewrites_total", "New files of the snapshot, without what is not cached any more.")
	service.NewGauge(set, "linkstream_edge_snapshot_bytes", "Size of the snapshot of what is cached.", func() float64 { return float64(l.bytes.Load()) })
	if err := l.load(each); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

// load reads the file and cuts off the part that is not sound.
func (l *Log) load(each func(Record) error) error {
	info, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("open snapshot: %w", err)
	}
	sound, err := read(l.file, func(r Record) error {
		if r.Kind&Entry != 0 {
			l.next = max(l.next, r.Number+1)
		}
		return each(r)
	})
	if err != nil && info.Size() > 0 {
		l.log.Warn("the snapshot of the cache is not used to its end", "path", l.path, "bytes", info.Size(), "sound", sound, "error", err)
	}
	if errors.Is(err, errRecord) { // each has seen records of the block that is cut off
		l.since.Store(l.next)
	}
	if sound < info.Size() || sound == 0 {
		if err = l.file.Truncate(sound); err == nil && sound == 0 {
			_, err = l.file.WriteAt(appendHeader(nil), 0)
			sound = int64(headerLen)
		}
	} else {
		err = nil
	}
	l.resize(sound)
	l.base = sound / 2 // so that a file does not grow from start to start
	if err != nil {
		l.fail(fmt.Errorf("repair snapshot: %w", err))
	}
	return nil
}

// Start starts the goroutine that writes, and that calls keep.
func (l *Log) Start(keep Keep) {
	l.keep = keep
	l.done.Go(l.run)
}

// Close writes pending records and closes the file. No Append may follow. It is idempotent.
func (l *Log) Close() {
	l.mu.Lock()
	select {
	case <-l.stop:
		l.mu.Unlock()
		return
	default:
		close(l.stop)
	}
	l.mu.Unlock()
	l.done.Wait()
	_ = l.flush() // which reports its error
	_ = l.file.Close()
}

// Append adds a record, and returns its number if it is an entry. It copies body. The log need not keep the record: see
// SavedSince.
func (l *Log) Append(kind byte, body []byte) (number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kind&Entry != 0 {
		number = l.next
		l.next++
	}
	if l.lost {
		return number
	}
	idle := len(l.pending.bytes) == 0
	if len(l.pending.bytes) > maxPending || !l.pending.append(kind, number, body) {
		l.lose()
		return number
	}
	if idle {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	return number
}

// SavedSince returns the smallest number of an entry that the file has for certain. Earlier ones were discarded, or appended again.
func (l *Log) SavedSince() uint64 { return l.since.Load() }

// lose discards pending records, and those that are appended before there is a new file. Callers hold mu.
func (l *Log) lose() {
	l.lost = true
	l.pending.reset()
	l.since.Store(l.next)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *Log) report(err error) {
	l.failures.Inc()
	l.log.Error("cannot write the snapshot of the cache", "path", l.path, "error", err)
}

// fail logs a failure. A new file has to be made after it.
func (l *Log) fail(err error) {
	l.report(err)
	l.retryAt = time.Now().Add(retryInterval)
	l.mu.Lock()
	l.lose()
	l.mu.Unlock()
}

func (l *Log) resize(size int64) {
	l.size = size
	l.bytes.Store(size)
}

// run writes pending records until Close.
func (l *Log) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-l.wake:
		}
		timer.Reset(max(flushInterval, time.Until(l.retryAt)))
		select {
		case <-l.stop:
			return
		case <-timer.C:
		}
		if l.isLost() || l.flush() == nil && l.size > 2*l.base+slack {
			l.rewrite()
		}
	}
}

func (l *Log) isLost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// take moves pending records to writing.
func (l *Log) take() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending.seal()
	l.pending, l.writing = l.writing, l.pending
	l.pending.reset()
}

// flush writes pending records to the file.
func (l *Log) flush() error {
	if l.isLost() {
		return nil
	}
	l.take()
	if len(l.writing.bytes) == 0 {
		return nil
	}
	if _, err := l.file.WriteAt(l.writing.bytes, l.size); err != nil {
		_ = l.file.Truncate(l.size) // if this fails, Open cuts the damaged end off
		l.fail(err)
		return err
	}
	l.resize(l.size + int64(len(l.writing.bytes)))
	l.writing.reset()
	return nil
}

// remove removes the file at path if it exists.
func remove(path string) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return // Open truncates it
	}
}
