package spool

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"linkstream/schema"
	"linkstream/schema/filelock"
)

var errFull = errors.New("the spool is full")

// Spool is a directory of lanes. One process at a time has it open. Append, Pending, Dropped and Ready may be called
// concurrently.
type Spool struct {
	cfg         Config
	log         *slog.Logger
	incarnation schema.Incarnation
	lock        *filelock.Lock
	fsync       func(*os.File) error

	lanes     []*Lane // of this process
	recovered []*Lane // of earlier processes

	used     atomic.Int64  // bytes of all segment files
	created  atomic.Uint64 // number of segments created, from which file names are made
	dropped  atomic.Uint64 // number of clicks dropped
	drops    dropCount     // the same since the directory was created
	limited  limited       // clicks that count towards limits
	quiet    atomic.Bool   // few clicks come: they all go to the first lane
	damaged  atomic.Uint64 // number of segments with clicks that could not be read
	refused  atomic.Uint64 // number of clicks that the broker refused for good
	faults   atomic.Uint64 // number of segments that could not be written to their end
	diskFull atomic.Bool   // the last segment could not be created or written to its end
	unsynced atomic.Bool   // since the folder was synced, a segment was created, became active or was removed

	syncing       sync.Mutex // held while a segment is synced or unmapped, so that neither happens during the other
	spareRequests chan *Lane // lanes that need a spare segment
	stop          chan struct{}
	workers       sync.WaitGroup
}

// lockName is the file in the directory of a spool that its process has locked.
const lockName = "lock"

// Open locks the directory, which it creates if needed, and recovers the clicks that earlier processes have left there.
// A full disk is no error.
func Open(cfg Config, log *slog.Logger) (*Spool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create spool: %w", err)
	}
	return open(cfg, log, cfg.laneCount())
}

// OpenLeft opens a spool for the clicks that earlier processes have left in it, and has no lanes for new clicks. The
// directory must have a spool.
func OpenLeft(cfg Config, log *slog.Logger) (*Spool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, lockName)); err != nil {
		return nil, fmt.Errorf("%q is not the directory of a spool: %w", cfg.Dir, err)
	}
	return open(cfg, log, 0)
}

func open(cfg Config, log *slog.Logger, lanes int) (s *Spool, err error) {
	cfg.SegmentBytes = cfg.segmentBytes()
	s = &Spool{cfg: cfg, log: log, fsync: (*os.File).Sync, stop: make(chan struct{})}
	s.drops.path = filepath.Join(cfg.Dir, dropCountName)
	if cfg.Uptime == nil {
		started := time.Now()
		s.cfg.Uptime = func() time.Duration { return time.Since(started) }
	}
	rand.Read(s.incarnation[:]) // never returns an error, see crypto/rand
	if s.lock, err = filelock.TryAcquire(filepath.Join(cfg.Dir, lockName)); err != nil {
		return nil, fmt.Errorf("lock spool: %w", err)
	}
	if err := s.open(lanes); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Spool) open(lanes int) error {
	if err := errors.Join(boundLaneEnds(filepath.Join(s.cfg.Dir, laneEndsName)), s.drops.persist()); err != nil {
		s.log.Warn("cannot prepare the counts of the spool, its clicks are not affected", "error", err)
	}
	if err := s.limited.open(filepath.Join(s.cfg.Dir, limitedName)); err != nil {
		s.log.Error("clicks that edges had leased and have not spent are lost for their links", "error", err)
	}
	if err := s.recover(); err != nil {
		return err
	}
	// Otherwise a power failure could lose the folder with all that is in it.
	parent := s.syncDir(filepath.Dir(s.cfg.Dir))
	if errors.Is(parent, fs.ErrPermission) { // the folder belongs to another user
		parent = nil
	}
	if err := errors.Join(s.syncDir(s.cfg.Dir), parent); err != nil {
		return fmt.Errorf("sync spool: %w", err)
	}
	s.spareRequests = make(chan *Lane, lanes)
	for i := range lanes {
		l := newLane(s, schema.Lane{Incarnation: s.incarnation, Number: uint32(i)})
		first, err := s.newSegment(l.id.Number, false)
		switch {
		case isFull(err): // start anyway: redirects work, and clicks are recorded as soon as there is room
			s.log.Error("cannot create spool segment", "error", err)
		case err != nil:
			return err
		}
		l.spare = first
		s.lanes = append(s.lanes, l)
	}
	s.workers.Go(s.createSpares)
	s.workers.Go(s.syncAndReport)
	return nil
}

// dir returns the folder of this incarnation's segments.
func (s *Spool) dir() string { return filepath.Join(s.cfg.Dir, s.incarnation.String()) }

// Append records c and reports whether there was room. It copies the bytes of c and ignores c.Lane and c.Seq, which the
// spool assigns. hint selects the lane while many clicks come; concurrent callers should pass different hints, so that
// they do not wait for each other. If no lane has room, Append drops the click, counts it, and returns false.
func (s *Spool) Append(hint uint64, c *schema.Click) bool {
	n := uint64(len(s.lanes))
	for i := range n {
		if s.lanes[(s.first(hint)+i)%n].append(c) {
			return true
		}
	}
	s.dropped.Add(1)
	s.drops.add()
	return false
}

// first returns the number of the lane to try first. Each lane that has clicks costs a partition an insert, however few
// they are.
func (s *Spool) first(hint uint64) uint64 {
	if s.quiet.Load() {
		return 0
	}
	return hint
}

// Instant returns the part of the spool that does not wait.
func (s *Spool) Instant() Instant { return Instant{s} }

// Instant records clicks at once or not at all.
type Instant struct{ spool *Spool }

// Append is Spool.Append for callers that must not wait. It returns false, without a trace, if every lane is in use by
// others or needs a segment that has yet to be created: then Spool.Append may have room.
func (i Instant) Append(hint uint64, c *schema.Click) bool {
	n := uint64(len(i.spool.lanes))
	for k := range n {
		if i.spool.lanes[(i.spool.first(hint)+k)%n].tryAppend(c) {
			return true
		}
	}
	return false
}

// Refused returns the number of clicks that the broker refused for good since the start.
func (s *Spool) Refused() uint64 { return s.refused.Load() }

// Damaged returns the number of segments with clicks that could not be read since the start.
func (s *Spool) Damaged() uint64 { return s.damaged.Load() }

// Lanes returns all lanes, the lanes of earlier processes first.
func (s *Spool) Lanes() []*Lane { return slices.Concat(s.recovered, s.lanes) }

// Dropped returns the number of clicks that were dropped since the start.
func (s *Spool) Dropped() uint64 { return s.dropped.Load() }

// Pending returns the number of clicks that are not acknowledged.
func (s *Spool) Pending() (n uint64) {
	for _, l := range s.Lanes() {
		n += l.Pending()
	}
	return n
}

// isFull reports whether err says that the spool or the disk is full.
func isFull(err error) bool {
	return errors.Is(err, errFull) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) ||
		errors.Is(err, unix.EFBIG)
}

// newSegment creates a spare segment, ahead of time or because a click needs it. It fails with errFull if the spool has
// reached its limit.
func (s *Spool) newSegment(lane uint32, ahead bool) (seg *segment, err error) {
	size := int64(s.cfg.SegmentBytes)
	if s.used.Add(size) > s.cfg.MaxBytes {
		s.used.Add(-size)
		return nil, errFull
	}
	if s.cfg.OnSegment != nil {
		err = s.cfg.OnSegment(ahead)
	}
	if err == nil {
		err = s.createDir()
	}
	if err == nil {
		name := fmt.Sprintf("%02d-%08d.segment", lane, s.created.Add(1))
		seg, err = createSegment(filepath.Join(s.dir(), name), int(size), s.cfg.OnSync)
	}
	if err != nil {
		s.used.Add(-size)
	}
	s.unsynced.Store(true)
	s.diskFull.Store(err != nil)
	return seg, err
}

// createDir creates the folder of this incarnation and syncs its parent; otherwise a power failure could lose the
// folder and all segments in it. It runs before every new segment, because the disk may have been full before.
func (s *Spool) createDir() error {
	err := os.Mkdir(s.dir(), 0o700)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create spool: %w", err)
	}
	noCopyOnWrite(s.dir())
	if err := s.syncDir(s.cfg.Dir); err != nil {
		return errors.Join(fmt.Errorf("sync spool: %w", err), os.Remove(s.dir())) // the next call tries again
	}
	return nil
}

// removeSegment removes a segment. One with damaged clicks is set aside instead, unless the spool is more than half
// full.
func (s *Spool) removeSegment(seg *segment) error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	defer s.unsynced.Store(true)
	if seg.damaged.Load() && s.used.Load() <= s.cfg.MaxBytes/2 {
		s.log.Error("setting a damaged spool segment aside", "path", seg.path+damagedSuffix)
		return errors.Join(os.Rename(seg.path, seg.path+damagedSuffix), seg.unmap())
	}
	s.used.Add(-int64(len(seg.data)))
	return errors.Join(os.Remove(seg.path), seg.unmap())
}

// requestSpare asks createSpares for a spare segment.
func (s *Spool) requestSpare(l *Lane) {
	select {
	case s.spareRequests <- l:
	default: // the queue is full: the lane creates its next segment itself
	}
}

// createSpares creates segments ahead of time, so that appends need not wait for the disk.
func (s *Spool) createSpares() {
	for {
		select {
		case <-s.stop:
			return
		case l := <-s.spareRequests:
			seg, err := s.newSegment(l.id.Number, true)
			if err == nil && !l.setSpare(seg) {
				err = s.removeSegment(seg)
			}
			if err != nil && !errors.Is(err, errFull) { // syncAndReport reports a full spool
				s.log.Error("cannot create spool segment", "error", err)
			}
		}
	}
}

// syncAndReport writes clicks to the disk at the configured interval, and logs how many clicks were dropped.
func (s *Spool) syncAndReport() {
	ticker := time.NewTicker(s.cfg.Sync)
	defer ticker.Stop()
	reported, faults := uint64(0), uint64(0)
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		if err := s.Sync(); err != nil {
			s.log.Error("cannot sync spool", "error", err)
		}
		if n := s.faults.Load(); n > faults {
			s.diskFull.Store(true) // until a segment can be created
			s.log.Error("cannot write spool segments to their end", "segments", n-faults, "error", errFault)
			faults = n
		}
		_ = s.drops.persist() // fails while the disk is full
		if n := s.dropped.Load(); n > reported {
			s.log.Error("spool is full, clicks are lost", "dropped", n-reported, "dropped_total", n,
				"max_bytes", s.cfg.MaxBytes, "pending", s.Pending())
			reported = n
		}
	}
}

// Sync writes the clicks of this process to the disk. Open has written the clicks of earlier ones.
func (s *Spool) Sync() error {
	var errs []error
	for _, l := range s.lanes {
		l.mu.Lock()
		segments := append([]*segment(nil), l.segments...)
		l.mu.Unlock()
		for _, seg := range segments {
			errs = append(errs, s.syncSegment(seg))
		}
	}
	return errors.Join(append(errs, s.syncNames())...)
}

// syncNames syncs the folder if its segments have changed: a power failure could lose new segments otherwise.
func (s *Spool) syncNames() error {
	if !s.unsynced.Swap(false) {
		return nil
	}
	err := s.syncDir(s.dir())
	if errors.Is(err, os.ErrNotExist) { // the disk has been full since the start
		return nil
	}
	if err != nil {
		s.unsynced.Store(true)
	}
	return err
}

func (s *Spool) syncSegment(seg *segment) error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	if seg.data == nil { // released since the caller copied the list
		return nil
	}
	return seg.sync()
}

// syncDir writes the names in a folder to the disk.
func (s *Spool) syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := errors.Join(s.fsync(d), d.Close()); err != nil {
		return err
	}
	onSync(s.cfg.OnSync).call(path, 0)
	return nil
}

// Close syncs and unmaps the segments and unlocks the directory. Clicks that are not acknowledged stay there for the
// next process. Nobody may read or acknowledge any more; clicks that are appended later are dropped.
func (s *Spool) Close() error {
	// 1. Stop the goroutines that use segments.
	close(s.stop)
	s.workers.Wait()
	// 2. Write pending clicks to the disk and remove segments without any.
	errs := []error{s.Sync()}
	for _, l := range s.Lanes() {
		errs = append(errs, l.close())
	}
	errs = append(errs, s.drops.close())
	// 3. Let another process open the spool.
	if entries, err := os.ReadDir(s.dir()); err == nil && len(entries) == 0 {
		errs = append(errs, os.Remove(s.dir()))
	}
	return errors.Join(append(errs, s.lock.Release())...)
}
