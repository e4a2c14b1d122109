// Package spool keeps clicks on the edge's own disk from the moment a redirect is answered until the broker has
// acknowledged them.
//
// Appending is memory speed: a copy into a memory-mapped file under a lane's lock, no system call, no allocation. What
// was appended survives kill -9 at once; Config.Sync bounds what a loss of power may take. Each start of a process
// draws a new incarnation, writes only to segments of its own, and ships what earlier ones left under the identity it
// was recorded with. The files are read and written by package spool alone; segment.go has their form.
package spool

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"linkstream/schema"
)

var errFull = errors.New("the spool is full")

// Spool is a directory of lanes. One process at a time has it open.
type Spool struct {
	cfg         Config
	log         *slog.Logger
	incarnation schema.Incarnation
	lock        *os.File

	lanes     []*Lane
	leftovers []*Lane

	used    atomic.Int64  // bytes of all segment files
	made    atomic.Uint64 // segments made, which numbers their files
	dropped atomic.Uint64 // clicks that found no room
	refused atomic.Bool   // the disk had no room for the segment that was asked for last

	mapped  sync.Mutex // held while a segment is synced or unmapped
	spares  chan *Lane // lanes that want a spare
	stop    chan struct{}
	workers sync.WaitGroup
}

// Open locks the directory, creating it if need be, and finds what earlier processes left there.
func Open(cfg Config, log *slog.Logger) (*Spool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Spool{cfg: cfg, log: log, stop: make(chan struct{})}
	rand.Read(s.incarnation[:]) // never fails, see crypto/rand
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create spool: %w", err)
	}
	if err := s.lockDir(); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Spool) open() error {
	if err := s.recover(); err != nil {
		return err
	}
	if err := syncDir(s.cfg.Dir); err != nil {
		return fmt.Errorf("sync spool: %w", err)
	}
	s.spares = make(chan *Lane, s.cfg.laneCount())
	for i := range s.cfg.laneCount() {
		l := newLane(s, schema.Lane{Incarnation: s.incarnation, Number: uint32(i)})
		first, err := s.newSegment(l.id.Number)
		switch {
		case isNoRoom(err): // is no reason not to start: links work, and clicks are counted again once there is room
			s.log.Error("spool cannot grow", "error", err)
		case err != nil:
			return err
		}
		l.spare = first
		s.lanes = append(s.lanes, l)
	}
	s.workers.Go(s.makeSpares)
	s.workers.Go(s.syncAndReport)
	return nil
}

// dir is where this incarnation's segments are.
func (s *Spool) dir() string { return filepath.Join(s.cfg.Dir, s.incarnation.String()) }

func (s *Spool) lockDir() error {
	f, err := os.OpenFile(filepath.Join(s.cfg.Dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock spool: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("lock spool %q: another process uses it: %w", s.cfg.Dir, err), f.Close())
	}
	s.lock = f
	return nil
}

// Append records c and reports whether there was room. hint chooses the lane; callers that run at the same time do
// well to differ in it. The spool assigns the click's Lane and Seq. When it is full the click is dropped and counted.
func (s *Spool) Append(hint uint64, c *schema.Click) bool {
	n := uint64(len(s.lanes))
	for i := range n {
		if s.lanes[(hint+i)%n].append(c) {
			return true
		}
	}
	s.dropped.Add(1)
	return false
}

// Lanes returns all lanes, the leftovers of earlier processes first.
func (s *Spool) Lanes() []*Lane {
	return append(append([]*Lane(nil), s.leftovers...), s.lanes...)
}

// Dropped returns how many clicks found no room since the start.
func (s *Spool) Dropped() uint64 { return s.dropped.Load() }

// Pending returns the number of clicks that wait for an acknowledgement.
func (s *Spool) Pending() (n uint64) {
	for _, l := range s.Lanes() {
		n += l.Pending()
	}
	return n
}

// isNoRoom reports whether the spool or the disk is full.
func isNoRoom(err error) bool {
	return errors.Is(err, errFull) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

func (s *Spool) newSegment(lane uint32) (*segment, error) {
	size := int64(s.cfg.SegmentBytes)
	if s.used.Add(size) > s.cfg.MaxBytes {
		s.used.Add(-size)
		return nil, errFull
	}
	name := fmt.Sprintf("%02d-%08d.segment", lane, s.made.Add(1))
	var seg *segment
	err := s.makeDir()
	if err == nil {
		seg, err = createSegment(filepath.Join(s.dir(), name), int(size))
	}
	if err != nil {
		s.used.Add(-size)
	}
	s.refused.Store(err != nil)
	return seg, err
}

// makeDir makes dir unless it is there, and has the disk know of it: a loss of power would else take all that is in it. It
// comes with a segment, for a full disk has no room for it either.
func (s *Spool) makeDir() error {
	err := os.Mkdir(s.dir(), 0o700)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create spool: %w", err)
	}
	if err := syncDir(s.cfg.Dir); err != nil {
		return errors.Join(fmt.Errorf("sync spool: %w", err), os.Remove(s.dir())) // so that it is tried again
	}
	return nil
}

func (s *Spool) removeSegment(seg *segment) error {
	s.mapped.Lock()
	defer s.mapped.Unlock()
	s.used.Add(-int64(len(seg.data)))
	return seg.remove()
}

func (s *Spool) wantSpare(l *Lane) {
	select {
	case s.spares <- l:
	default: // the lane makes its next segment itself
	}
}

func (s *Spool) makeSpares() {
	for {
		select {
		case <-s.stop:
			return
		case l := <-s.spares:
			seg, err := s.newSegment(l.id.Number)
			if err == nil && !l.setSpare(seg) {
				err = s.removeSegment(seg)
			}
			if err != nil && !errors.Is(err, errFull) {
				s.log.Error("spool cannot grow", "error", err)
			}
		}
	}
}

// syncAndReport bounds what a loss of power may take, and says so when clicks are dropped.
func (s *Spool) syncAndReport() {
	ticker := time.NewTicker(s.cfg.Sync)
	defer ticker.Stop()
	reported := uint64(0)
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		if err := s.sync(); err != nil {
			s.log.Error("spool cannot be written to disk", "error", err)
		}
		if n := s.dropped.Load(); n > reported {
			s.log.Error("spool has no room, clicks are lost", "dropped", n-reported, "dropped_total", n,
				"max_bytes", s.cfg.MaxBytes, "pending", s.Pending())
			reported = n
		}
	}
}

func (s *Spool) sync() error {
	var errs []error
	for _, l := range s.lanes {
		l.mu.Lock()
		segments := append([]*segment(nil), l.segments...)
		l.mu.Unlock()
		for _, seg := range segments {
			errs = append(errs, s.syncSegment(seg))
		}
	}
	err := syncDir(s.dir())
	if errors.Is(err, os.ErrNotExist) { // there was no room yet for anything
		err = nil
	}
	return errors.Join(append(errs, err)...)
}

func (s *Spool) syncSegment(seg *segment) error {
	s.mapped.Lock()
	defer s.mapped.Unlock()
	if seg.data == nil { // released meanwhile
		return nil
	}
	return seg.sync()
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Close ends the lanes and unlocks the directory; clicks that are not acknowledged stay for the next process. Nothing
// may append, read or acknowledge any more.
func (s *Spool) Close() error {
	// 1. No goroutine of the spool touches a segment.
	close(s.stop)
	s.workers.Wait()
	// 2. What is pending is on the disk, what is not is gone.
	errs := []error{s.sync()}
	for _, l := range s.Lanes() {
		errs = append(errs, l.close())
	}
	// 3. Another process may take over.
	if entries, err := os.ReadDir(s.dir()); err == nil && len(entries) == 0 {
		errs = append(errs, os.Remove(s.dir()))
	}
	return errors.Join(append(errs, s.lock.Close())...)
}
