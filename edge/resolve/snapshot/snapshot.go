package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema/service"
)

const (
	// dumpInterval leaves ten seconds for the dump: what has been cached for a minute is on disk.
	dumpInterval = 50 * time.Second
	newSuffix    = ".new"
	everything   = "" // in place of a key
)

// errInvalid means that a dump must not be used, because keys are missing in its list.
var errInvalid = errors.New("dropped keys were lost")

// Snapshot is a dump and its list. Add, Invalidate and Close may be called concurrently.
type Snapshot struct {
	path string
	log  *slog.Logger
	fill func(*Writer) error // see Start
	keys chan string         // to be appended to the lists
	stop chan struct{}
	done sync.WaitGroup
	once sync.Once

	// Owned by run. Another goroutine writes a dump, one at a time, while run appends keys to the lists.
	list    *list // of the dump; nil without a dump
	next    *list // of the dump that is being written; nil without one, and if it has become invalid
	dumping bool
	early   bool // a dump was begun because list is long
	dumped  chan error

	dumps, failures *metrics.Counter
}

// Open opens the snapshot at path. If it is whole, Open calls dropped for each key of the list, then record for each
// record of the dump; body is valid until record returns. Otherwise Open removes it. Nobody else may use the files,
// whose names begin with path. The caller must call Close.
func Open(
	path string, dropped func(key string), record func(kind byte, body []byte), set *metrics.Set, log *slog.Logger,
) *Snapshot {
	s := &Snapshot{path: path, log: log,
		keys: make(chan string, queuedKeys), stop: make(chan struct{}), dumped: make(chan error, 1)}
	s.failures = service.NewCounter(set, "linkstream_edge_snapshot_failures_total",
		"Failures to write the snapshot of what is cached.")
	s.dumps = service.NewCounter(set, "linkstream_edge_snapshot_dumps_total",
		"How often the snapshot of what is cached was written.")
	service.NewGauge(set, "linkstream_edge_snapshot_bytes", "Size of the snapshot of what is cached.", s.bytes)
	if err := s.restore(dropped, record); err != nil {
		log.Warn("the snapshot of the cache is not used", "path", path, "error", err)
		s.remove()
	}
	s.removeRemains()
	return s
}

// restore reads the dump twice, first to check it.
func (s *Snapshot) restore(dropped func(key string), record func(kind byte, body []byte)) error {
	generation, err := readDumpFile(s.path, func(byte, []byte) {})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	l, keys, err := openList(s.path, generation)
	if err != nil {
		return err
	}
	s.list = l
	for _, key := range keys {
		dropped(key)
	}
	_, err = readDumpFile(s.path, record)
	return err
}

// removeRemains removes what a crash may have left: unfinished dumps, and lists of other dumps.
func (s *Snapshot) removeRemains() {
	_ = os.Remove(s.path + newSuffix)
	paths, _ := filepath.Glob(s.path + "." + strings.Repeat("[0-9a-f]", len(generationKey(0))))
	for _, path := range paths {
		if s.list == nil || path != s.list.Name() {
			_ = os.Remove(path)
		}
	}
}

// bytes returns the size of the dump.
func (s *Snapshot) bytes() float64 {
	info, err := os.Stat(s.path)
	if err != nil {
		return 0
	}
	return float64(info.Size())
}

// Start begins to write a dump every dumpInterval. Fill adds the entries. Entries whose keys were passed to Add before
// fill is called must not be added.
func (s *Snapshot) Start(fill func(*Writer) error) {
	s.fill = fill
	s.done.Go(s.run)
}

// Close writes a last dump, if Start was called. It is idempotent.
func (s *Snapshot) Close() {
	s.once.Do(func() {
		close(s.stop)
		s.done.Wait()
		if s.fill != nil {
			s.appendKeys()
			s.beginDump(nil)
			if s.dumping {
				s.endDump(<-s.dumped)
			}
		}
		if s.list != nil {
			_ = s.list.Close()
		}
	})
}

// Add appends the key of an entry that was dropped to the list, soon. The caller has dropped the entry before. Add
// waits while queuedKeys wait for the disk.
func (s *Snapshot) Add(key string) {
	select {
	case s.keys <- key:
	case <-s.stop:
	}
}

// Invalidate is Add for all keys.
func (s *Snapshot) Invalidate() { s.Add(everything) }

// run appends keys and begins dumps until Close.
func (s *Snapshot) run() {
	timer := time.NewTimer(dumpInterval)
	defer timer.Stop()
	for {
		select {
		case key := <-s.keys:
			s.appendKeys(key)
		case <-timer.C:
			s.beginDump(s.stop)
			timer.Reset(dumpInterval)
		case err := <-s.dumped:
			s.endDump(err)
		case <-s.stop:
			if s.dumping {
				s.endDump(<-s.dumped)
			}
			return
		}
	}
}

// appendKeys appends keys, and those that wait, to the lists.
func (s *Snapshot) appendKeys(keys ...string) {
	for len(s.keys) > 0 && len(keys) < queuedKeys {
		keys = append(keys, <-s.keys)
	}
	var appended []byte
	for _, key := range keys {
		if appended = appendKey(appended, key); key == everything || len(key) > maxKeyLen {
			s.remove()
		}
	}
	err := errors.Join(s.list.append(appended), s.next.append(appended))
	if err == nil && s.tooLong() {
		err = errInvalid
	}
	if err != nil {
		s.report(fmt.Errorf("append to the list of dropped keys: %w", err))
		s.remove()
	}
	if s.list != nil && s.list.size > listBytes && !s.early {
		s.early = true
		s.beginDump(s.stop)
	}
}

func (s *Snapshot) tooLong() bool {
	return s.list != nil && s.list.size > maxListBytes || s.next != nil && s.next.size > maxListBytes
}

// remove removes the dump and the lists. A dump that is being written becomes invalid.
func (s *Snapshot) remove() {
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.report(err)
	}
	s.list.remove()
	s.next.remove()
	s.list, s.next = nil, nil
}

// beginDump begins to write a dump with its list, unless that is under way.
func (s *Snapshot) beginDump(stop <-chan struct{}) {
	if s.dumping {
		return
	}
	generation := rand.Uint64()
	l, err := createList(s.path, generation)
	if err != nil {
		s.report(fmt.Errorf("create the list of dropped keys: %w", err))
		return
	}
	s.next, s.dumping = l, true
	go func() {
		err := writeDump(s.path+newSuffix, generation, s.fill, stop)
		s.dumped <- errors.Join(err, l.Sync())
	}()
}

// endDump makes the dump that was written the valid one, unless writing it has failed or it has become invalid.
func (s *Snapshot) endDump(err error) {
	s.dumping = false
	if s.next == nil {
		err = errInvalid
	}
	if err == nil {
		err = os.Rename(s.path+newSuffix, s.path)
	}
	if err != nil {
		_ = os.Remove(s.path + newSuffix)
		s.next.remove()
		s.next = nil
		if !errors.Is(err, errStopped) && !errors.Is(err, errInvalid) {
			s.report(fmt.Errorf("write the dump: %w", err))
		}
		return
	}
	s.list.remove()
	s.list, s.next, s.early = s.next, nil, false
	s.dumps.Inc()
}

func (s *Snapshot) report(err error) {
	s.failures.Inc()
	s.log.Error("cannot write the snapshot of the cache", "path", s.path, "error", err)
}
